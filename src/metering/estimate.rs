//! The size of a request before a provider has counted it.
//!
//! Three numbers. What is likely, near a tokenizer's count and slightly above it. The bound, at which the request is held: a token for
//! each byte, or what a tokenizer counts, raised by what another vendor's may count more. And what no provider can honestly count
//! above, for claims of providers. Media count by the rules that vendors publish.

use farebox_protocol::{Content, Document, ImageDetail, Picture, TextSize};

use crate::config::ModelLimits;

/// Tokens that frame one message: role, separators.
const PER_MESSAGE: u64 = 4;
/// Tokens that frame one tool besides its schema text.
const PER_TOOL: u64 = 8;
/// Tokens that frame the whole prompt.
const PER_PROMPT: u64 = 8;
/// Tokens that a model may put around each text of a call.
const AROUND: u64 = 2;
/// The highest count for one picture under the published rules.
const LARGEST_PICTURE: u64 = 1_600;
/// A picture with `detail: original`.
const LARGEST_ORIGINAL: u64 = 10_000;
/// The highest count for one picture that any vendor publishes for a model without `picture_tokens`: Claude since 4.7.
const LARGEST_CLAIM: u64 = 4_784;
/// A provider may count this many times what we expect of a document's pages.
const DOCUMENT_CLAIM: u64 = 2;
/// What a provider may add to any prompt: words of its own about tools, dates and formats.
const ADDED: u64 = 4_096;
/// A tokenizer's count is raised by one in so many where it is what is likely.
const COUNTED_UP: u64 = 50;
/// A picture with `detail: low`.
const LOW_DETAIL_PICTURE: u64 = 85;

/// Input tokens of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Estimate {
    /// The likely count, slightly high.
    pub input: u64,
    /// An upper bound; at most the model's context.
    pub bound: u64,
    /// The likely count, not capped by the context and without unreadable documents.
    pub known: u64,
    /// The most that a provider can count for it; at most the model's context.
    pub most: u64,
}

impl Estimate {
    /// The larger of each.
    #[must_use]
    pub fn dearer(self, other: Self) -> Self {
        Self {
            input: self.input.max(other.input),
            bound: self.bound.max(other.bound),
            known: self.known.max(other.known),
            most: self.most.max(other.most),
        }
    }
}

impl Estimate {
    /// The estimate of a request whose text a tokenizer has counted: what is likely, and the most that its vendor's makes of it.
    #[must_use]
    pub fn counted(self, (tokens, most): (u64, u64), limits: &ModelLimits) -> Self {
        let known = tokens.saturating_add(tokens / COUNTED_UP);
        if self.input > self.known {
            // A document that nobody can read may fill the context, whatever stands beside it.
            return Self { known, ..self };
        }
        let input = known.min(limits.context);
        Self {
            input,
            bound: most.min(self.bound).max(input),
            known,
            most: self.most.max(input),
        }
    }

    /// The estimate, raised to a tokenizer's count of `tokens`.
    #[must_use]
    pub fn at_least(self, tokens: u64, limits: &ModelLimits) -> Self {
        let input = self.input.max(tokens.min(limits.context));
        Self {
            input,
            bound: self.bound.max(input),
            known: self.known.max(tokens),
            most: self.most.max(input),
        }
    }
}

/// Measures the model's input. Every bound is capped by the context, because a provider refuses more than that and does not bill
/// it.
pub fn input(content: &Content, limits: &ModelLimits) -> Estimate {
    let context = limits.context;
    let fixed = fixed(content, limits);
    let unread = content.documents.iter().any(is_unread);
    let bytes = content.text.ascii.saturating_add(content.text.other);
    // A sample may be denser than the whole can be.
    let likely = content.weight.tokens().min(bytes);
    let known = fixed.saturating_add(likely);
    Estimate {
        input: if unread { context } else { known.min(context) },
        bound: if unread {
            context
        } else {
            let around = around(content);
            fixed
                .saturating_add(bytes)
                .saturating_add(around)
                .min(context)
        },
        known,
        most: if unread {
            context
        } else {
            claimable(content, limits)
                .saturating_add(bytes)
                .min(context)
        },
    }
}

/// The most that a provider can count for everything but text.
fn claimable(content: &Content, limits: &ModelLimits) -> u64 {
    let pictures = content.pictures.iter().map(|one| {
        let ours = picture(one, limits);
        if limits.picture_tokens.is_some() {
            ours
        } else {
            ours.max(LARGEST_CLAIM)
        }
    });
    let documents = content
        .documents
        .iter()
        .filter_map(|document| document.tokens);
    let documents = documents.map(|tokens| tokens.saturating_mul(DOCUMENT_CLAIM));
    framing(content)
        .saturating_add(around(content))
        .saturating_add(ADDED)
        .saturating_add(pictures.chain(documents).fold(0, u64::saturating_add))
}

/// The most that a model puts around the texts of a call; most put nothing there.
pub(super) fn around(content: &Content) -> u64 {
    AROUND.saturating_mul(u64::from(content.inputs))
}

fn framing(content: &Content) -> u64 {
    if content.inputs > 0 {
        return content.tokens;
    }
    PER_PROMPT
        .saturating_add(PER_MESSAGE.saturating_mul(u64::from(content.messages)))
        .saturating_add(PER_TOOL.saturating_mul(u64::from(content.tools)))
}

/// Tokens of everything but text: framing, pictures, and readable documents.
pub fn fixed(content: &Content, limits: &ModelLimits) -> u64 {
    let pictures = content.pictures.iter().map(|one| picture(one, limits));
    let documents = content
        .documents
        .iter()
        .filter_map(|document| document.tokens);
    pictures
        .chain(documents)
        .fold(framing(content), u64::saturating_add)
}

/// A high estimate of an answer's tokens, for holds.
pub fn upper(text: TextSize) -> u64 {
    // English prose has about 4.3 ASCII bytes per token, code and JSON about 3.3; other scripts about 2 bytes.
    text.ascii
        .saturating_mul(2)
        .div_ceil(7)
        .saturating_add(text.other.div_ceil(2))
}

/// A low estimate of a text's tokens, for charging without a provider's count.
pub fn lower(text: TextSize) -> u64 {
    (text.ascii / 5).saturating_add(text.other / 4)
}

/// The fewest tokens that any tokenizer makes of a text: only long runs of one character take more bytes per token.
pub fn surely(text: TextSize) -> u64 {
    text.ascii.saturating_add(text.other) / 16
}

/// Tokens of one picture: the highest of the three published rules.
pub fn picture(picture: &Picture, limits: &ModelLimits) -> u64 {
    if let Some(tokens) = limits.picture_tokens {
        return tokens;
    }
    match (picture.detail, picture.size) {
        (ImageDetail::Low, _) => LOW_DETAIL_PICTURE,
        (ImageDetail::Original, size) => {
            let (width, height) = size.unwrap_or((u32::MAX, u32::MAX));
            patches(width, height).clamp(
                by_tiles(width, height).min(LARGEST_PICTURE),
                LARGEST_ORIGINAL,
            )
        }
        (_, Some((width, height))) => by_area(width, height)
            .max(by_tiles(width, height))
            .max(by_patches(width, height))
            .min(LARGEST_PICTURE),
        (_, None) => LARGEST_PICTURE,
    }
}

/// One token per 750 pixels, after scaling the longer side down to 1,568.
fn by_area(width: u32, height: u32) -> u64 {
    let (width, height) = scaled(
        (u64::from(width), u64::from(height)),
        u64::from(width.max(height)),
        1_568,
    );
    width.saturating_mul(height).div_ceil(750)
}

/// 170 tokens per tile of 512 pixels, plus 85: the longer side is scaled down to 2,048, then the shorter one to 768.
fn by_tiles(width: u32, height: u32) -> u64 {
    let (width, height) = scaled(
        (u64::from(width), u64::from(height)),
        u64::from(width.max(height)),
        2_048,
    );
    let (width, height) = scaled((width, height), width.min(height), 768);
    let tiles = width.div_ceil(512).saturating_mul(height.div_ceil(512));
    tiles.saturating_mul(170).saturating_add(LOW_DETAIL_PICTURE)
}

/// One token per patch of 32 pixels, at most 1,536 of them.
fn by_patches(width: u32, height: u32) -> u64 {
    patches(width, height).min(1_536)
}

fn patches(width: u32, height: u32) -> u64 {
    u64::from(width.div_ceil(32)).saturating_mul(u64::from(height.div_ceil(32)))
}

/// A size scaled down so that `side` becomes `most`; rounded up.
fn scaled((width, height): (u64, u64), side: u64, most: u64) -> (u64, u64) {
    if side <= most {
        return (width, height);
    }
    (
        width.saturating_mul(most).div_ceil(side),
        height.saturating_mul(most).div_ceil(side),
    )
}

fn is_unread(document: &Document) -> bool {
    document.tokens.is_none()
}

#[cfg(test)]
mod tests {
    use farebox_protocol::token_estimate::Weight;

    use super::*;
    use crate::config::{self, Capability, ProcessSecrets, Source, presets};

    fn text(ascii: u64) -> Content {
        let mut weight = Weight::default();
        weight.add_unread(ascii);
        Content {
            text: TextSize { ascii, other: 0 },
            weight,
            messages: 1,
            ..Content::default()
        }
    }

    fn limits(context: u64) -> ModelLimits {
        ModelLimits {
            context,
            max_output: 64_000,
            max_reasoning: None,
            speed: None,
            image_bytes: None,
            picture_tokens: None,
            tools: None,
        }
    }

    #[test]
    fn the_bound_is_never_below_what_is_likely() {
        for ascii in [0, 1, 7, 400, 90_000] {
            let found = input(&text(ascii), &limits(1_000_000));
            assert!(found.bound >= found.input, "{found:?}");
        }
    }

    #[test]
    fn a_document_that_cannot_be_counted_is_the_whole_context() {
        let content = Content {
            documents: vec![Document {
                bytes: 10,
                place: 0..0,
                tokens: None,
            }],
            ..text(10)
        };
        assert_eq!(
            input(&content, &limits(200_000)),
            Estimate {
                input: 200_000,
                bound: 200_000,
                known: 15,
                most: 200_000
            }
        );
        let content = Content {
            documents: vec![Document {
                bytes: 10,
                place: 0..0,
                tokens: Some(9_000),
            }],
            ..text(10)
        };
        let found = input(&content, &limits(200_000));
        assert_eq!((found.input, found.most), (9_015, 18_000 + 4_096 + 22));
    }

    /// Each model's own rule, as its vendor documents it.
    #[test]
    fn the_models_of_the_presets_count_a_picture_at_no_less_than_their_vendors() {
        let rule = |slug: &str, (width, height): (u32, u32)| match slug {
            "gpt-5.4-mini" => (patches(width, height).min(1_536) * 162).div_ceil(100),
            "gemini-3.8-flash" => 1_120,
            // Larger pictures count more; see `picture_tokens` in docs/services.md.
            "claude-sonnet-5.5" if width.max(height) <= 1_568 => {
                (u64::from(width.div_ceil(28)) * u64::from(height.div_ceil(28))).min(1_568)
            }
            "claude-sonnet-5.5" => 0,
            other => panic!("{other}: what does its vendor say about pictures?"),
        };
        let mut models = 0;
        for preset in presets() {
            let (catalog, routes) = (preset.starter_catalog(), preset.starter_routes());
            let files = (
                Source::new("catalog.toml", &catalog),
                Source::new("routes.toml", &routes),
            );
            let config = config::load(&files.0, &files.1, &ProcessSecrets { lenient: true })
                .0
                .unwrap();
            let model = &config.catalog.models[0];
            if !model.can(Capability::Vision) {
                continue;
            }
            models += 1;
            for (detail, size) in
                [ImageDetail::Auto, ImageDetail::High]
                    .into_iter()
                    .flat_map(|detail| {
                        let sizes = [
                            (1, 1),
                            (256, 256),
                            (800, 600),
                            (1_024, 1_024),
                            (1_280, 800),
                            (1_568, 1_100),
                            (1_920, 1_080),
                            (4_032, 3_024),
                        ];
                        sizes.map(|size| (detail, size))
                    })
            {
                let counted = super::picture(
                    &Picture {
                        bytes: Some(100),
                        size: Some(size),
                        detail,
                    },
                    &model.limits,
                );
                assert!(
                    counted >= rule(&model.slug, size),
                    "{} {size:?}: {counted}",
                    model.slug
                );
            }
            let unknown = super::picture(
                &Picture {
                    bytes: None,
                    size: None,
                    detail: ImageDetail::Auto,
                },
                &model.limits,
            );
            assert!(
                unknown >= rule(&model.slug, (8_000, 8_000)),
                "{}: by its address",
                model.slug
            );
        }
        assert_eq!(models, 5);
    }

    #[test]
    fn pictures_cost_what_their_size_costs_by_the_dearest_rule() {
        let of = |size, detail| {
            super::picture(
                &Picture {
                    bytes: Some(100),
                    size,
                    detail,
                },
                &limits(200_000),
            )
        };
        for ((width, height), tokens) in [
            ((1, 1), 255),
            ((200, 200), 255),
            ((512, 512), 350),
            ((1_024, 1_024), 1_399),
            ((4_000, 3_000), 1_600),
            ((100_000, 10), 1_536),
        ] {
            assert_eq!(
                of(Some((width, height)), ImageDetail::Auto),
                tokens,
                "{width} x {height}"
            );
        }
        assert_eq!(
            (
                of(None, ImageDetail::Auto),
                of(None, ImageDetail::High),
                of(None, ImageDetail::Low)
            ),
            (1_600, 1_600, 85)
        );
        let original = |size| of(size, ImageDetail::Original);
        assert_eq!(
            (original(Some((9, 9))), original(Some((1_920, 1_080)))),
            (255, 2_040)
        );
        assert_eq!(
            (
                original(Some((3_200, 3_200))),
                original(Some((60_000, 9_000))),
                original(None)
            ),
            (10_000, 10_000, 10_000)
        );
        let dear = ModelLimits {
            picture_tokens: Some(48_169),
            ..limits(200_000)
        };
        let any = Picture {
            bytes: None,
            size: Some((9, 9)),
            detail: ImageDetail::Low,
        };
        assert_eq!(super::picture(&any, &dear), 48_169, "one price for all");
    }
}
