//! Decodes answers that come compressed, although nobody asked: some proxies do not read what is accepted.
//!
//! Bytes are decoded as they arrive, in small steps, so that a stream stays one and a few bytes cannot fill the memory: what reads them
//! counts them as it counts others, and beyond a small amount they may not be more than a hundred times what came. Checksums are not
//! compared: TLS and TCP have theirs, and what is no JSON is refused.

use std::io::Read;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use bytes::Bytes;
use flate2::{Decompress, FlushDecompress, Status};
use reqwest::header::{GetAll, HeaderValue};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::network::network_chunk;

/// Bytes decoded at a time, and those that may come of whatever came.
const STEP: usize = 64 * 1024;
/// How many times as much as came may come out.
// Texts and JSON stay far below it; what is made to fill the memory comes near deflate's most, a thousand to one.
const MOST_TIMES: u64 = 100;
/// The largest window of zstd that decoders of HTTP must have (RFC 9659).
const LARGEST_WINDOW: u64 = 8 << 20;

/// How an answer is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerCoding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl AnswerCoding {
    /// The coding that the headers name together, if any.
    pub(super) fn of(headers: GetAll<'_, HeaderValue>) -> Result<Option<Self>, String> {
        let mut headers = headers.into_iter();
        let Some(named) = headers.next() else {
            return Ok(None);
        };
        let name = named.to_str().unwrap_or("?").trim().to_ascii_lowercase();
        match name.as_str() {
            _ if headers.next().is_some() => Err("an answer with several codings".to_owned()),
            "" | "identity" => Ok(None),
            "gzip" | "x-gzip" => Ok(Some(Self::Gzip)),
            "deflate" => Ok(Some(Self::Deflate)),
            "br" => Ok(Some(Self::Brotli)),
            "zstd" => Ok(Some(Self::Zstd)),
            _ => Err("an answer in a coding that was not asked for".to_owned()),
        }
    }

    /// The decoded bytes of a body.
    pub(super) fn body(self, coded: Box<reqwest::Body>) -> CodedBody {
        let decoder = match self {
            Self::Gzip => BodyDecoder::Gzip(Gzip::Start, Box::new(Decompress::new(false))),
            Self::Deflate => BodyDecoder::Deflate(None),
            Self::Brotli => BodyDecoder::Brotli(Box::new(BrotliState::new_strict(
                StandardAlloc::default(),
                StandardAlloc::default(),
                StandardAlloc::default(),
            ))),
            Self::Zstd => {
                let mut frames = FrameDecoder::new();
                frames.set_max_window_size(LARGEST_WINDOW);
                BodyDecoder::Zstd(Box::new(frames), Zstd::default())
            }
        };
        CodedBody {
            coded,
            waiting: Vec::new(),
            came: 0,
            made: 0,
            ended: false,
            decoder,
        }
    }
}

/// A compressed body, and how far it is decoded.
pub(super) struct CodedBody {
    coded: Box<reqwest::Body>,
    /// Bytes that came and are not decoded.
    waiting: Vec<u8>,
    came: u64,
    made: u64,
    /// No more bytes come.
    ended: bool,
    decoder: BodyDecoder,
}

/// The decoder of one coding.
enum BodyDecoder {
    /// Between the head and the tail of each member is what is deflated.
    Gzip(Gzip, Box<Decompress>),
    /// With a head of its own, or without, as some servers send it; not known before its first bytes.
    Deflate(Option<Box<Decompress>>),
    Brotli(Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>),
    Zstd(Box<FrameDecoder>, Zstd),
}

/// Where a body in gzip is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gzip {
    /// Before the first member.
    Start,
    Inside,
    Tail,
    /// Behind a whole member, where another may follow.
    Behind,
}

/// What is known of a body in zstd.
#[derive(Debug, Clone, Copy, Default)]
struct Zstd {
    /// A frame has begun.
    begun: bool,
    /// It ends with a checksum.
    checked: bool,
}

/// What one step did.
#[derive(Debug, Default)]
struct DecodeStep {
    read: usize,
    made: usize,
    /// The body may end here.
    whole: bool,
}

/// The bytes are not coded as they say.
struct Miscoded;

impl CodedBody {
    /// The next decoded bytes, `None` at the end; empty if what came was not enough for any. Dropping the future loses nothing.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, String> {
        let (made, whole) = self.step()?;
        if !made.is_empty() {
            return Ok(Some(made));
        }
        if self.ended {
            return if whole {
                Ok(None)
            } else {
                Err("a compressed answer that is cut off".to_owned())
            };
        }
        match network_chunk(&mut self.coded).await? {
            Some(chunk) => {
                self.came += chunk.len() as u64;
                self.waiting.extend_from_slice(&chunk);
            }
            None => self.ended = true,
        }
        Ok(Some(self.step()?.0))
    }

    /// Decodes at most [`STEP`] bytes of what came; also says whether the body may end behind them.
    fn step(&mut self) -> Result<(Bytes, bool), String> {
        let mut out = vec![0; STEP];
        let (mut at, mut made) = (0, 0);
        let whole = loop {
            let (input, room) = (
                self.waiting.get(at..).unwrap_or_default(),
                out.get_mut(made..).unwrap_or_default(),
            );
            let decoded = self
                .decoder
                .decode(input, room)
                .map_err(|Miscoded| "an answer that is not coded as it says".to_owned())?;
            at += decoded.read;
            made += decoded.made;
            if made == STEP || decoded.read + decoded.made == 0 {
                break decoded.whole && at == self.waiting.len();
            }
        };
        self.waiting.drain(..at);
        self.made += made as u64;
        if self.made > STEP as u64 + self.came.saturating_mul(MOST_TIMES) {
            return Err(format!("an answer compressed more than {MOST_TIMES} to 1"));
        }
        out.truncate(made);
        out.shrink_to_fit();
        Ok((out.into(), whole))
    }
}

impl BodyDecoder {
    fn decode(&mut self, input: &[u8], out: &mut [u8]) -> Result<DecodeStep, Miscoded> {
        match self {
            Self::Gzip(place, inflate) => gzip(place, inflate, input, out),
            Self::Deflate(Some(inflate)) => deflate(inflate, input, out),
            Self::Deflate(begun @ None) => {
                let [first, second, ..] = *input else {
                    return Ok(DecodeStep::default());
                };
                // RFC 1950: the method, and a head that 31 divides.
                let headed = first & 0x0f == 8 && u16::from_be_bytes([first, second]) % 31 == 0;
                let inflate = begun.insert(Box::new(Decompress::new(headed)));
                deflate(inflate, input, out)
            }
            Self::Brotli(state) => brotli(state, input, out),
            Self::Zstd(frames, known) => zstd(frames, known, input, out),
        }
    }
}

fn deflate(inflate: &mut Decompress, input: &[u8], out: &mut [u8]) -> Result<DecodeStep, Miscoded> {
    let before = (inflate.total_in(), inflate.total_out());
    let status = inflate
        .decompress(input, out, FlushDecompress::None)
        .map_err(|_| Miscoded)?;
    let since = |now: u64, before: u64| usize::try_from(now - before).unwrap_or(usize::MAX);
    Ok(DecodeStep {
        read: since(inflate.total_in(), before.0),
        made: since(inflate.total_out(), before.1),
        whole: status == Status::StreamEnd,
    })
}

fn gzip(
    place: &mut Gzip,
    inflate: &mut Decompress,
    input: &[u8],
    out: &mut [u8],
) -> Result<DecodeStep, Miscoded> {
    let (next, read) = match place {
        Gzip::Inside => {
            let mut decoded = deflate(inflate, input, out)?;
            if std::mem::take(&mut decoded.whole) {
                *place = Gzip::Tail;
            }
            return Ok(decoded);
        }
        Gzip::Start | Gzip::Behind => {
            inflate.reset(false);
            (Gzip::Inside, gzip_head(input)?)
        }
        Gzip::Tail => (Gzip::Behind, GZIP_TAIL),
    };
    if read > input.len() {
        return Ok(DecodeStep {
            whole: *place == Gzip::Behind && input.is_empty(),
            ..DecodeStep::default()
        });
    }
    *place = next;
    Ok(DecodeStep {
        read,
        ..DecodeStep::default()
    })
}

/// A checksum and a length.
const GZIP_TAIL: usize = 8;

/// The length of the head of a member in gzip (RFC 1952), at least: more than there is until all of it has come.
fn gzip_head(input: &[u8]) -> Result<usize, Miscoded> {
    const FIXED: usize = 10;
    let known = input.len().min(3);
    if input.get(..known) != [0x1f, 0x8b, 8].get(..known) {
        return Err(Miscoded);
    }
    let Some(flags) = input.get(3).filter(|_| input.len() >= FIXED) else {
        return Ok(FIXED);
    };
    let mut at = FIXED;
    if flags & 4 != 0 {
        let Some([low, high]) = input.get(at..at + 2) else {
            return Ok(at + 2);
        };
        at += 2 + usize::from(u16::from_le_bytes([*low, *high]));
    }
    for named in [8, 16] {
        if flags & named != 0 {
            let rest = input.get(at..).unwrap_or_default();
            match rest.iter().position(|byte| *byte == 0) {
                Some(end) => at += end + 1,
                None => return Ok(input.len().max(at) + 1),
            }
        }
    }
    Ok(if flags & 2 == 0 { at } else { at + 2 })
}

fn brotli(
    state: &mut BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>,
    input: &[u8],
    out: &mut [u8],
) -> Result<DecodeStep, Miscoded> {
    let (mut left, mut read) = (input.len(), 0);
    let (mut room, mut made, mut total) = (out.len(), 0, 0);
    let result = BrotliDecompressStream(
        &mut left, &mut read, input, &mut room, &mut made, out, &mut total, state,
    );
    match result {
        BrotliResult::ResultFailure => Err(Miscoded),
        BrotliResult::ResultSuccess
        | BrotliResult::NeedsMoreInput
        | BrotliResult::NeedsMoreOutput => Ok(DecodeStep {
            read,
            made,
            whole: matches!(result, BrotliResult::ResultSuccess),
        }),
    }
}

/// One block at a time, because a few bytes of several can be gigabytes. The decoder gives out what is older than its window: a stream
/// that ends within it comes at its end.
fn zstd(
    frames: &mut FrameDecoder,
    known: &mut Zstd,
    input: &[u8],
    out: &mut [u8],
) -> Result<DecodeStep, Miscoded> {
    let made = frames.read(out).map_err(|_| Miscoded)?;
    if made > 0 {
        return Ok(DecodeStep {
            made,
            ..DecodeStep::default()
        });
    }
    let between = frames.is_finished();
    let read = if between {
        zstd_head(input)
    } else {
        zstd_block(input, known.checked)
    };
    let Some(mut part) = input.get(..read) else {
        return Ok(DecodeStep {
            whole: between && known.begun && input.is_empty(),
            ..DecodeStep::default()
        });
    };
    if between {
        frames.init(&mut part).map_err(|_| Miscoded)?;
        *known = Zstd {
            begun: true,
            checked: input.get(4).is_some_and(|flags| flags & 4 != 0),
        };
    } else {
        let one = BlockDecodingStrategy::UptoBlocks(1);
        frames.decode_blocks(&mut part, one).map_err(|_| Miscoded)?;
    }
    Ok(DecodeStep {
        read,
        ..DecodeStep::default()
    })
}

/// The length of a frame's head in zstd (RFC 8878), at least: more than there is until all of it has come.
fn zstd_head(input: &[u8]) -> usize {
    const FIXED: usize = 5;
    let Some(flags) = input.get(4) else {
        return FIXED;
    };
    let single = flags & 0x20 != 0;
    let dictionary = [0, 1, 2, 4][usize::from(flags & 3)];
    let size = match flags >> 6 {
        0 => usize::from(single),
        1 => 2,
        2 => 4,
        _ => 8,
    };
    FIXED + usize::from(!single) + dictionary + size
}

/// The length of a block, with the checksum behind a last one; as above.
fn zstd_block(input: &[u8], checked: bool) -> usize {
    const FIXED: usize = 3;
    let Some([low, middle, high]) = input.get(..FIXED) else {
        return FIXED;
    };
    let head = u32::from_le_bytes([*low, *middle, *high, 0]);
    let size = usize::try_from(head >> 3).unwrap_or(usize::MAX);
    // Of a byte that is repeated only one is there.
    let stands = if head >> 1 & 3 == 1 { 1 } else { size };
    let behind = if checked && head & 1 == 1 { 4 } else { 0 };
    FIXED + stands + behind
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use std::io::Write;

    use super::*;

    const TEXT: &str = "data: {\"one\": 1}\n\n";
    /// 200 times that, and 1 MiB of blanks, by the reference encoder: nothing here writes brotli.
    const BROTLI: &str =
        "1b0f0ef81d07eebe0df9fa901aa7560011d151317b5de6f6d6a70479b02c0881e01600ec92d610";
    const BLANKS: &str = "5bffff8f5f02241e0b0472ef1f00";

    fn coded(coding: AnswerCoding, pieces: Vec<Vec<u8>>) -> CodedBody {
        let stream = futures_util::stream::iter(pieces.into_iter().map(Ok::<_, std::io::Error>));
        coding.body(Box::new(reqwest::Body::wrap_stream(stream)))
    }

    async fn decoded(coding: AnswerCoding, pieces: &[Vec<u8>]) -> Result<Vec<u8>, String> {
        let (mut body, mut all) = (coded(coding, pieces.to_vec()), Vec::new());
        while let Some(bytes) = body.chunk().await? {
            assert!(bytes.len() <= STEP);
            all.extend_from_slice(&bytes);
        }
        Ok(all)
    }

    /// The text in every coding that an encoder is here for.
    fn samples(text: &[u8]) -> Vec<(AnswerCoding, Vec<u8>)> {
        let level = Compression::default();
        let mut gzip = GzEncoder::new(Vec::new(), level);
        let mut zlib = ZlibEncoder::new(Vec::new(), level);
        let mut raw = DeflateEncoder::new(Vec::new(), level);
        gzip.write_all(text).unwrap();
        zlib.write_all(text).unwrap();
        raw.write_all(text).unwrap();
        let fastest = ruzstd::encoding::CompressionLevel::Fastest;
        vec![
            (AnswerCoding::Gzip, gzip.finish().unwrap()),
            (AnswerCoding::Deflate, zlib.finish().unwrap()),
            (AnswerCoding::Deflate, raw.finish().unwrap()),
            (
                AnswerCoding::Zstd,
                ruzstd::encoding::compress_to_vec(text, fastest),
            ),
        ]
    }

    /// Text that an encoder can halve at best.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let digit = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            b"0123456789abcdef"[(state >> 28) as usize]
        };
        (0..length).map(digit).collect()
    }

    #[tokio::test]
    async fn every_coding_in_any_pieces_is_the_text() {
        for text in [Vec::new(), TEXT.as_bytes().to_vec(), noise(500_000)] {
            for (coding, bytes) in samples(&text) {
                for size in [1, 7, 10_000, bytes.len().max(1)] {
                    if size == 1 && bytes.len() > 10_000 {
                        continue;
                    }
                    let pieces: Vec<Vec<u8>> = bytes.chunks(size).map(<[u8]>::to_vec).collect();
                    let all = decoded(coding, &pieces).await.unwrap();
                    assert!(all == text, "{coding:?} in pieces of {size}");
                }
                let cut = bytes[..bytes.len() - 1].to_vec();
                decoded(coding, &[cut]).await.unwrap_err();
            }
        }
    }

    #[tokio::test]
    async fn brotli_in_any_pieces_is_the_text() {
        let brotli = hex::decode(BROTLI).unwrap();
        for size in [1, 3, brotli.len()] {
            let pieces: Vec<Vec<u8>> = brotli.chunks(size).map(<[u8]>::to_vec).collect();
            let all = decoded(AnswerCoding::Brotli, &pieces).await;
            assert_eq!(
                all,
                Ok(TEXT.repeat(200).into_bytes()),
                "in pieces of {size}"
            );
        }
        let cut = brotli[..brotli.len() - 1].to_vec();
        decoded(AnswerCoding::Brotli, &[cut]).await.unwrap_err();
    }

    #[tokio::test]
    async fn what_a_stream_has_flushed_is_there_before_more_comes() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(TEXT.as_bytes()).unwrap();
        encoder.flush().unwrap();
        let flushed = std::mem::take(encoder.get_mut());
        let mut body = coded(AnswerCoding::Gzip, vec![flushed, encoder.finish().unwrap()]);
        assert_eq!(body.chunk().await.unwrap().unwrap(), TEXT);
    }

    #[tokio::test]
    async fn nothing_grows_without_bound() {
        let brotli = (AnswerCoding::Brotli, hex::decode(BLANKS).unwrap());
        for (coding, bytes) in samples(&vec![b' '; 20 << 20]).into_iter().chain([brotli]) {
            let error = decoded(coding, &[bytes]).await.unwrap_err();
            assert_eq!(
                error, "an answer compressed more than 100 to 1",
                "{coding:?}"
            );
        }
        for coding in [
            AnswerCoding::Gzip,
            AnswerCoding::Deflate,
            AnswerCoding::Brotli,
            AnswerCoding::Zstd,
        ] {
            let error = decoded(coding, &[b"{\"plain\": 1}".to_vec()]).await;
            error.unwrap_err();
        }
    }

    #[tokio::test]
    async fn members_of_gzip_follow_each_other_and_may_have_names() {
        let named = |text: &str| {
            let builder = flate2::GzBuilder::new()
                .filename("a")
                .comment("b")
                .extra("c");
            let mut encoder = builder.write(Vec::new(), Compression::fast());
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        };
        let both = [named("one "), named("two")].concat();
        let pieces: Vec<Vec<u8>> = both.chunks(1).map(<[u8]>::to_vec).collect();
        assert_eq!(
            decoded(AnswerCoding::Gzip, &pieces).await.as_deref(),
            Ok(&b"one two"[..])
        );
    }
}
