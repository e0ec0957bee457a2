//! The size of a request before a provider has counted it.
//!
//! Two numbers: the estimate, near what a tokenizer would say and a little above it, which decides whether a request is
//! affordable; and the ceiling, which no tokenizer exceeds (a token is at least one byte), for keys that are nearly empty.

use farebox_protocol::{Content, Detail, Document, Picture, TextSize};

/// Tokens that frame one message: role, separators.
const PER_MESSAGE: u64 = 4;
/// Tokens that frame one tool besides its schema text.
const PER_TOOL: u64 = 8;
/// Tokens that frame the whole prompt.
const PER_PROMPT: u64 = 8;
/// One page of a PDF: its text and its picture.
const PER_PAGE: u64 = 3_000;
/// The most any family bills for one picture.
const LARGEST_PICTURE: u64 = 1_600;
/// A picture looked at with low detail.
const LOW_DETAIL_PICTURE: u64 = 85;

/// Input tokens of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Likely, rather a little high.
    pub input: u64,
    /// Never exceeded; at most the model's context.
    pub ceiling: u64,
    /// Seldom undercut.
    pub least: u64,
}

/// Measures what the model will read. `context` bounds both numbers: more than that is never billed, it is refused.
#[must_use]
pub fn input(content: &Content, context: u64) -> Estimate {
    let framing = PER_PROMPT
        .saturating_add(PER_MESSAGE.saturating_mul(u64::from(content.messages)))
        .saturating_add(PER_TOOL.saturating_mul(u64::from(content.tools)));
    let pictures = content.pictures.iter().map(picture).fold(0, u64::saturating_add);
    let documents = content.documents.iter().map(|document| pages(document, context)).fold(0, u64::saturating_add);
    let fixed = framing.saturating_add(pictures).saturating_add(documents);
    let bytes = content.text.ascii.saturating_add(content.text.other);
    // Samples may weigh more than the whole can.
    let likely = content.weight.tokens().min(bytes);
    let pictures_at_most = LARGEST_PICTURE.saturating_mul(content.pictures.len() as u64);
    Estimate {
        input: fixed.saturating_add(likely).min(context),
        ceiling: framing.saturating_add(documents).saturating_add(pictures_at_most).saturating_add(bytes).min(context),
        least: least(content.text, fixed.saturating_add(likely)).min(context),
    }
}

/// Input tokens, rather too few: for what no provider counted. A share of the estimate, for text that takes few tokens.
#[must_use]
pub fn least(text: TextSize, estimate: u64) -> u64 {
    lower(text).min(estimate.saturating_mul(7) / 10)
}

/// Tokens of an answer's text, rather too many: for holding.
#[must_use]
pub fn upper(text: TextSize) -> u64 {
    // English prose has about 4.3 ASCII bytes to a token, code and JSON about 3.3; other scripts about 2 bytes.
    text.ascii.saturating_mul(2).div_ceil(7).saturating_add(text.other.div_ceil(2))
}

/// Tokens of a text, rather too few: for charging what no provider counted.
#[must_use]
pub fn lower(text: TextSize) -> u64 {
    (text.ascii / 5).saturating_add(text.other / 4)
}

/// Tokens that a text has by any tokenizer: only long runs of one character take more bytes to a token.
#[must_use]
pub fn surely(text: TextSize) -> u64 {
    text.ascii.saturating_add(text.other) / 16
}

fn picture(picture: &Picture) -> u64 {
    match (picture.detail, picture.size) {
        (Detail::Low, _) => LOW_DETAIL_PICTURE,
        (_, Some((width, height))) => by_area(width, height).min(LARGEST_PICTURE),
        (_, None) => LARGEST_PICTURE,
    }
}

/// The larger of the two ways families bill a picture of known size: by area, or by tiles of 512 pixels.
fn by_area(width: u32, height: u32) -> u64 {
    let area = u64::from(width).saturating_mul(u64::from(height)) / 750;
    let tiles = u64::from(width.div_ceil(512)).saturating_mul(u64::from(height.div_ceil(512)));
    area.max(tiles.saturating_mul(170).saturating_add(LOW_DETAIL_PICTURE))
}

fn pages(document: &Document, context: u64) -> u64 {
    document.pages.map_or(context, |pages| PER_PAGE.saturating_mul(u64::from(pages)))
}

#[cfg(test)]
mod tests {
    use farebox_protocol::token_estimate::Weight;

    use super::*;

    fn text(ascii: u64) -> Content {
        let mut weight = Weight::default();
        weight.add_unread(ascii);
        Content { text: TextSize { ascii, other: 0 }, weight, messages: 1, ..Content::default() }
    }

    #[test]
    fn the_ceiling_is_never_below_the_estimate() {
        for ascii in [0, 1, 7, 400, 90_000] {
            let found = input(&text(ascii), 1_000_000);
            assert!(found.ceiling >= found.input, "{found:?}");
        }
    }

    #[test]
    fn a_document_that_cannot_be_counted_is_the_whole_context() {
        let content = Content { documents: vec![Document { bytes: 10, pages: None }], ..text(10) };
        assert_eq!(input(&content, 200_000), Estimate { input: 200_000, ceiling: 200_000, least: 2 });
    }

    #[test]
    fn a_small_picture_is_billed_by_its_size_and_one_without_a_size_at_the_largest() {
        let small = Picture { bytes: Some(100), size: Some((200, 200)), detail: Detail::Auto };
        let unknown = Picture { bytes: None, size: None, detail: Detail::Auto };
        assert_eq!(super::picture(&small), 255);
        assert_eq!(super::picture(&unknown), LARGEST_PICTURE);
    }
}
