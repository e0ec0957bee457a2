//! Translating a text delta allocates nothing.

use bytes::Bytes;
use farebox_protocol::translate::{AnswerWish, Memo, Translator};
use farebox_protocol::{Family, Frame};

/// The frames before a text delta, and the delta.
fn stream(upstream: Family) -> (Vec<&'static str>, &'static str) {
    match upstream {
        Family::Chat => (
            vec![r#"{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#],
            r#"{"id":"c","choices":[{"index":0,"delta":{"content":"TEXT"}}]}"#,
        ),
        Family::Messages => (
            vec![
                r#"{"type":"message_start","message":{"id":"m","content":[]}}"#,
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            ],
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"TEXT"}}"#,
        ),
        Family::Responses => (
            vec![
                r#"{"type":"response.created","response":{"id":"r","output":[]},"sequence_number":0}"#,
                r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"i","type":"message","content":[]},"sequence_number":1}"#,
            ],
            r#"{"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"delta":"TEXT","sequence_number":2}"#,
        ),
    }
}

fn frame(data: &str) -> Frame {
    Frame::new(Bytes::from(format!("data: {data}\n\n")))
}

#[test]
fn a_text_delta_allocates_nothing() {
    for upstream in Family::ALL {
        for caller in Family::ALL.into_iter().filter(|caller| *caller != upstream) {
            let wish = AnswerWish {
                model: "slug",
                id: "req1",
                created: 7,
                request: b"{}",
            };
            let mut translator = Translator::new(upstream, caller, Memo::default(), &wish);
            let (first, delta) = stream(upstream);
            first
                .iter()
                .for_each(|data| drop(translator.frame(&frame(data)).to_vec()));
            // Two texts in turn, one of which only a parser can judge: both ways are walked.
            let frames = [" word", "\\u00e4\\n"].map(|text| frame(&delta.replace("TEXT", text)));
            frames
                .iter()
                .cycle()
                .take(8)
                .for_each(|frame| drop(translator.frame(frame).to_vec()));
            let mut bytes = 0;
            let counted = allocation_counter::measure(|| {
                for frame in frames.iter().cycle().take(1_000) {
                    bytes += translator.frame(frame).len();
                }
            });
            assert!(
                bytes > 10_000,
                "{upstream} to {caller}: nothing was translated"
            );
            // A responses caller gets the whole text once more at the end: what is kept for that doubles now and then.
            let most = if caller == Family::Responses { 12 } else { 0 };
            assert!(
                counted.count_total <= most,
                "{upstream} to {caller}: {} allocations",
                counted.count_total
            );
        }
    }
}
