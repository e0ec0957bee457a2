//! Local token counts, for answers without a usable count from the provider: accurate, and rounded slightly in the customer's
//! favour.
//!
//! Three steps. A tokenizer's count of a sample, corrected by script and vendor, is scaled to the whole text. The target's own counts for other requests correct the
//! tokenizer, which is not the model's own. The result is lowered by 2 %. Pure; tokenizing a sample is slow and must run on a
//! blocking thread.

use farebox_protocol::{Content, TextSample};

use super::{TextCounter, estimate, rates};
use crate::config::ModelLimits;

/// The deduction in the customer's favour, to cover the uncertainty: 2 %.
const ROUNDED: (u64, u64) = (98, 100);
/// One in a calibration factor.
const ONE: u64 = 1_000;

/// Output tokens of an answer, given a sample of its text.
pub fn output(sample: &TextSample, counter: TextCounter) -> u64 {
    scaled(counter.count(&sample.text()), sample.seen(), sample.kept())
}

/// Input tokens of a request: its text by the tokenizer, everything else by the admission rules; at most the context.
pub fn input(content: &Content, limits: &ModelLimits, counter: TextCounter) -> u64 {
    if content
        .documents
        .iter()
        .any(|document| document.tokens.is_none())
    {
        return limits.context;
    }
    known(content, limits, counter).min(limits.context)
}

/// The same without the cap, and without unreadable documents.
pub fn known(content: &Content, limits: &ModelLimits, counter: TextCounter) -> u64 {
    whole(content, limits, counter.count(&content.sample.text()))
}

/// The same with what a tokenizer makes of it at most beside it.
pub fn bounded(content: &Content, limits: &ModelLimits, counter: TextCounter) -> (u64, u64) {
    let text = content.sample.text();
    let counted = |tokens| whole(content, limits, tokens);
    (
        counted(counter.count(&text)),
        counted(counter.most(&text)).saturating_add(estimate::around(content)),
    )
}

/// What the whole is, of whose sample so many tokens were counted.
fn whole(content: &Content, limits: &ModelLimits, counted: u64) -> u64 {
    let sample = &content.sample;
    let text = match content.text.bytes() {
        // Sealed reasoning and inline text files are in the estimate but not in the sample.
        bytes if bytes == sample.kept() => counted,
        // Weights are in 64ths of a token. They distinguish light text from heavy, so they scale a sample better than its bytes do.
        _ => scaled(
            counted,
            content.weight.tokens().saturating_mul(64),
            sample.weight(),
        ),
    };
    estimate::fixed(content, limits).saturating_add(text)
}

fn scaled(counted: u64, whole: u64, part: u64) -> u64 {
    let scaled = u128::from(counted)
        .saturating_mul(u128::from(whole))
        .checked_div(u128::from(part.max(1)))
        .unwrap_or_default();
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// A count as the target would have counted.
pub fn corrected(count: u64, factor: u64) -> u64 {
    scaled(count, within(factor), ONE)
}

/// The count that is charged: as the target would have counted, rounded in the customer's favour.
pub fn charged(count: u64, factor: u64) -> u64 {
    let factor = within(factor);
    let tokens = u128::from(count)
        .saturating_mul(u128::from(factor))
        .saturating_mul(u128::from(ROUNDED.0))
        .checked_div(u128::from(ONE.saturating_mul(ROUNDED.1)))
        .unwrap_or_default();
    // A positive count never rounds down to zero.
    u64::try_from(tokens).unwrap_or(u64::MAX).max(count.min(1))
}

/// A charged count without its rounding.
pub fn unrounded(charged: u64) -> u64 {
    charged
        .saturating_mul(ROUNDED.1)
        .checked_div(ROUNDED.0)
        .unwrap_or(charged)
}

fn within(factor: u64) -> u64 {
    factor.clamp(rates::RATIOS.0, rates::RATIOS.1)
}

#[cfg(test)]
mod tests {
    use farebox_protocol::Family;
    use tiktoken_rs::o200k_base_singleton;

    use super::*;

    /// In JSON form, in pieces of a stream.
    fn output_of(text: &str, seed: u64) -> u64 {
        let mut sample = TextSample::seeded(seed);
        let quoted = serde_json::to_string(text).unwrap();
        let inner: Vec<char> = quoted[1..quoted.len() - 1].chars().collect();
        for piece in inner.chunks(11) {
            let piece: String = piece.iter().collect();
            sample.add(&piece);
        }
        charged(output(&sample, TextCounter::PLAIN), ONE)
    }

    fn input_of(text: &str, seed: u64) -> u64 {
        let body =
            serde_json::json!({"model": "m", "messages": [{"role": "user", "content": text}]})
                .to_string();
        let seen = Family::Chat
            .protocol()
            .inspect(body.as_bytes(), seed)
            .unwrap();
        charged(known(&seen.content, &LIMITS, TextCounter::PLAIN), ONE)
    }

    const LIMITS: ModelLimits = ModelLimits {
        context: 200_000,
        max_output: 9,
        max_reasoning: None,
        speed: None,
        image_bytes: None,
        picture_tokens: None,
        tools: None,
    };

    /// Texts in many scripts, code, digits and encoded bytes.
    fn texts() -> Vec<(String, String)> {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let files = ["bench/estimate/texts", "tests/fixtures/scripts"]
            .map(|folder| std::fs::read_dir(root.join(folder)).unwrap());
        let mut texts: Vec<(String, String)> = files
            .into_iter()
            .flatten()
            .map(|file| file.unwrap().path())
            .filter(|path| {
                path.extension().is_none_or(|ending| ending != "md") || path.ends_with("table.md")
            })
            .map(|path| {
                (
                    path.file_name().unwrap().to_string_lossy().into_owned(),
                    std::fs::read_to_string(path).unwrap(),
                )
            })
            .collect();
        let mut state = 7_u64;
        let mut word = |letters: &[u8]| -> String {
            (0..30_000)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    char::from(letters[(state >> 33) as usize % letters.len()])
                })
                .collect()
        };
        texts.push(("(digits)".to_owned(), word(b"0123456789")));
        texts.push((
            "(base64)".to_owned(),
            word(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"),
        ));
        texts.push(("(hexadecimal)".to_owned(), word(b"0123456789abcdef")));
        texts.sort();
        texts
    }

    /// The lowest, highest and median count of a text, in thousandths of the truth.
    fn shares(text: &str, truth: u64, count: impl Fn(&str, u64) -> u64) -> [u64; 3] {
        // Short texts are read completely, whatever the seed.
        let seeds = if text.len() > TextSample::MOST { 15 } else { 1 };
        let mut shares: Vec<u64> = (0..seeds)
            .map(|seed| count(text, seed * 7_919 + 1) * 1_000 / truth)
            .collect();
        shares.sort_unstable();
        [
            shares[0],
            shares[shares.len() / 2],
            shares[shares.len() - 1],
        ]
    }

    /// Prints the figures behind P10 of `docs/PROMISES.md` with `--nocapture`.
    #[test]
    fn local_counts_are_near_what_another_tokenizer_counts_in_every_script() {
        let percent = |share: u64| format!("{}.{}", share / 10, share % 10);
        let mut middles = Vec::new();
        for (name, text) in texts() {
            let mut row = format!("| {} ", name.trim_end_matches(".txt"));
            let other = o200k_base_singleton();
            for times in [1, 1 + 60_000 / text.len()] {
                let text = text.repeat(times);
                let truth = other.encode_ordinary(&text).len() as u64;
                // The framing is a large part of a short prompt.
                let input = shares(&text, truth + 12, input_of);
                let output = shares(&text, truth, output_of);
                for (found, what) in [(input, "input"), (output, "output")] {
                    let room = if text.len() > TextSample::MOST {
                        870..=1_100
                    } else {
                        950..=1_010
                    };
                    let least_and_most = room.contains(&found[0]) && room.contains(&found[2]);
                    assert!(
                        least_and_most,
                        "{what} of {name}, {} bytes: {found:?}",
                        text.len()
                    );
                }
                if times > 1 {
                    middles.extend([input[1], output[1]]);
                    for [least, middle, most] in [input, output] {
                        row += &format!(
                            "| {} ({}–{}) ",
                            percent(middle),
                            percent(least),
                            percent(most)
                        );
                    }
                }
            }
            println!("{row}|");
        }
        let mean = middles.iter().sum::<u64>() / middles.len() as u64;
        assert!(
            (970..=995).contains(&mean),
            "rounded to the customer's side by 2 %, and no other way: {mean}"
        );
    }

    #[test]
    fn an_input_count_knows_text_pictures_and_pages() {
        let picture =
            r#"{"type":"image","source":{"type":"url","url":"https://example.com/y.png"}}"#;
        let body = format!(
            r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":[{}{{"type":"text","text":"{}"}}]}}]}}"#,
            format!("{picture},").repeat(90),
            "some words ".repeat(500)
        );
        let seen = Family::Messages
            .protocol()
            .inspect(body.as_bytes(), 5)
            .unwrap();
        let limits = LIMITS;
        let mut content = seen.content;
        let found = input(&content, &limits, TextCounter::PLAIN);
        assert!(
            (90 * 1_600 + 980..90 * 1_600 + 1_080).contains(&found),
            "{found}"
        );
        content.documents = vec![farebox_protocol::Document {
            bytes: 1,
            place: 0..0,
            tokens: Some(30_000),
        }];
        assert_eq!(input(&content, &limits, TextCounter::PLAIN), found + 30_000);
        content.documents = vec![farebox_protocol::Document {
            bytes: 1,
            place: 0..0,
            tokens: None,
        }];
        assert_eq!(
            input(&content, &limits, TextCounter::PLAIN),
            200_000,
            "nobody can know"
        );
    }

    #[test]
    fn a_correction_goes_only_so_far() {
        assert_eq!(
            (
                charged(0, ONE),
                charged(1, ONE),
                charged(1_000, ONE),
                charged(1_000, 1_100),
                charged(1_000, 9_000)
            ),
            (0, 1, 980, 1_078, 1_225)
        );
        assert_eq!((corrected(1_000, 9_000), corrected(1_000, 1)), (1_250, 800));
    }

    #[test]
    fn the_slowest_text_takes_no_longer_than_others() {
        let mut sample = TextSample::seeded(1);
        sample.add(&"a".repeat(100_000));
        let found = output(&sample, TextCounter::PLAIN);
        assert!((10_000..15_000).contains(&found) && sample.text().len() <= TextSample::MOST);
    }
}
