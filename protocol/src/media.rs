//! Measures inline pictures and documents from their base64 text.
//!
//! Decodes only what it needs: the head of a picture for its size; a document only when its bytes are requested. Must not fail:
//! what cannot be read is simply unknown, and the estimate takes the largest size.

use std::borrow::Cow;
use std::ops::Range;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::json::unescape;
use crate::{ImageDetail, Picture, picture_size};

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// How much of a picture is decoded to find its size: the first step usually suffices, metadata may need the second.
const HEADS: [usize; 2] = [4 << 10, 512 << 10];

/// How much of a file is decoded to detect its type. Parsers accept the PDF marker slightly after the beginning.
const FILE_HEAD: usize = 1_400;

/// An inline payload: its media type and its base64 text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Payload<'a> {
    pub(crate) media: &'a str,
    pub(crate) base64: &'a str,
}

impl<'a> Payload<'a> {
    /// Splits `data:MEDIA;base64,TEXT`; `None` for other URLs.
    pub(crate) fn from_url(url: &'a str) -> Option<Self> {
        let scheme = url
            .get(..5)
            .filter(|scheme| scheme.eq_ignore_ascii_case("data:"))?;
        let (head, base64) = url.get(scheme.len()..)?.split_once(',')?;
        Some(Self {
            media: head.split(';').next().unwrap_or_default(),
            base64,
        })
    }

    /// Whether it is text rather than a document with pages: its sender says so and its first bytes do not contradict. No text
    /// contains a zero byte, and word processor files do.
    pub(crate) fn is_text(&self) -> bool {
        let packed = || {
            self.head()
                .is_some_and(|bytes| bytes.starts_with(b"PK\x03\x04") || bytes.contains(&0))
        };
        (self.media.starts_with("text/") || self.media == "application/json") && !packed()
    }

    /// Whether it is a PDF, whatever its sender calls it.
    pub(crate) fn is_pdf(&self) -> bool {
        self.head()
            .is_some_and(|bytes| memchr::memmem::find(&bytes, b"%PDF-").is_some())
    }

    fn head(&self) -> Option<Vec<u8>> {
        decode(self.base64.get(..FILE_HEAD).unwrap_or(self.base64))
    }

    /// Its text, if it is text.
    pub(crate) fn text(&self) -> Option<String> {
        decode(self.base64).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Size in bytes when decoded.
    pub(crate) fn bytes(&self) -> u64 {
        self.base64.trim_end_matches('=').len() as u64 * 3 / 4
    }

    pub(crate) fn picture(&self, detail: ImageDetail) -> Picture {
        let size = HEADS.iter().find_map(|head| {
            let head = self.base64.get(..*head).unwrap_or(self.base64);
            picture_size::size(&decode(head)?, head.len() == self.base64.len())
        });
        Picture {
            bytes: Some(self.bytes()),
            size,
            detail,
        }
    }
}

/// The bytes of an inline document whose base64 text or `data:` URL is at `place` in a body, quotes included.
pub fn document_bytes(body: &[u8], place: &Range<usize>) -> Option<Vec<u8>> {
    let quoted = std::str::from_utf8(body.get(place.clone())?).ok()?;
    let text = unescape(quoted.strip_prefix('"')?.strip_suffix('"')?);
    decode(Payload::from_url(&text).map_or(&text, |payload| payload.base64))
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let mut text = Cow::Borrowed(text.trim_end_matches('='));
    if text.bytes().any(|byte| byte.is_ascii_whitespace()) {
        text = Cow::Owned(text.split_ascii_whitespace().collect());
    }
    // A head cut out of a longer text may end with one character too many.
    let whole = if text.len() % 4 == 1 {
        text.len() - 1
    } else {
        text.len()
    };
    BASE64.decode(text.get(..whole)?).ok()
}
