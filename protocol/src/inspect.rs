//! The facts that the gateway needs about a request, the same for every family.
//!
//! An [`Inspection`] borrows nothing: it records positions as byte ranges, so that the body can be spliced later without a second
//! walk. `walk.rs` finds the facts.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::sync::LazyLock;

use crate::class::{ClassPlace, Classes};
use crate::conversation::ConversationPlaces;
use crate::hints;
use crate::json::Cursor;
use crate::sample::TextSample;
use crate::talk::Talk;
use crate::target_fit::TargetFit;
use crate::token_estimate::Weight;
use crate::{Family, TextSize};

/// What a request tells its target about thinking, as far as that decides what is billed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToldThinking {
    /// Whether reasoning may happen that a stream does not show.
    pub hidden: bool,
    /// Whether it has reasoning turned off, in a family where that can be said.
    pub off: bool,
}

/// Names and words of the dialects are shorter; longer ones count as text.
pub(crate) const LONGEST_NAME: usize = 32;
/// Most bytes of removed fields' names in a header.
const MOST_NAMED: usize = 1_024;

/// The facts of one request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inspection {
    /// The model's name as the customer wrote it, unescaped.
    pub model: String,
    /// Whether a stream is asked for.
    pub stream: bool,
    /// The declared output limit, if any.
    pub limit: Option<u32>,
    /// Number of answers requested (`n`), at least 1.
    pub choices: u32,
    /// Tokens set aside for thinking inside the limit.
    pub thinking_budget: Option<u32>,
    /// A sample of the answer that the customer predicts; unused parts of a prediction are billed as output.
    pub prediction: TextSample,
    /// What it says about thinking.
    pub thinking: ToldThinking,
    /// Its client may refer to the items of its answer later.
    pub may_refer: bool,
    /// The answer has to have a form, or has to call a tool: half of it is of no use.
    pub formed: bool,
    /// The request has stop strings, so the answer may end before its first word.
    pub has_stops: bool,
    /// What the model will read.
    pub content: Content,
    /// Parts that the answer to a call must have.
    pub parts: u32,
    /// How many searches a call is where a service bills by the search.
    pub searches: u64,
    /// Some of the prompt is marked to be written to a cache.
    pub cache_marked: bool,
    /// A cache write for one hour is asked for somewhere.
    pub one_hour_cache: bool,
    /// A cache write for twelve hours is asked for somewhere.
    pub half_day_cache: bool,
    /// The prompt is only written to a cache: nothing is to be answered.
    pub prewarms: bool,
    /// The classes that it asks for.
    pub classes: Classes,
    /// From how many input tokens on the upstream compacts the conversation, if it is asked to.
    pub compacts_from: Option<u64>,
    /// The customer asked for the usage chunk of a chat stream.
    pub asks_usage: bool,
    /// The customer wants no `usage.cost`.
    pub hides_cost: bool,
    /// Names of server-side search tools that will be taken out, for `x-farebox-removed`.
    pub removed_tools: Vec<String>,
    /// Top-level fields that no table knows, in order. They go upstream only if the provider passes them.
    pub unknown: Vec<String>,
    /// The positions of edits.
    pub places: Places,
}

/// The places of a request that may be let go: an open stream no longer needs them.
#[derive(Clone, Eq, Default)]
pub struct Places(Option<Box<SplicePlaces>>);

impl Places {
    /// Frees them, once the request has gone to its upstream.
    pub fn forget(&mut self) {
        self.0 = None;
    }
}

impl PartialEq for Places {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(out)
    }
}

impl Deref for Places {
    type Target = SplicePlaces;

    fn deref(&self) -> &SplicePlaces {
        static NONE: LazyLock<SplicePlaces> = LazyLock::new(SplicePlaces::default);
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for Places {
    fn deref_mut(&mut self) -> &mut SplicePlaces {
        self.0.get_or_insert_default()
    }
}

/// Byte ranges in the request body, for splicing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SplicePlaces {
    /// Just after the opening brace, where new top-level members go.
    pub start: usize,
    /// The body is `{}` apart from white space.
    pub empty: bool,
    /// The value of `model`, quotes included.
    pub model: Range<usize>,
    /// The value of the declared limit field, with its name.
    pub limit: Option<(&'static str, Range<usize>)>,
    /// The same for the second limit field when a chat request declares both with the same value.
    pub limit_twin: Option<(&'static str, Range<usize>)>,
    /// Limit fields that are present but `null`: a limit to be written under that name replaces the `null`.
    pub nulls: Vec<(&'static str, Range<usize>)>,
    /// The value of `stream_options` (chat) when present.
    pub stream_options: Option<Range<usize>>,
    /// The value of `store` when present.
    pub store: Option<Range<usize>>,
    /// The value of the field that says how much to think in words that not every target of the family takes: chat's `reasoning`, and
    /// native thinking that is turned off.
    pub thinking: Option<Range<usize>>,
    /// An effort is said in a field of its own.
    pub effort: bool,
    /// A lifetime of cache writes is asked for apart from marks.
    pub lifetime_apart: bool,
    /// The fields that ask for a class, or for none.
    pub classes: Vec<ClassPlace>,
    /// What repeats in the next request of a conversation.
    pub talk: Talk,
    /// What says which conversation that is.
    pub conversation: ConversationPlaces,
    /// What is removed for every target: whole members or array elements, each with one neighbouring comma so that the rest stays
    /// valid.
    pub cuts: Vec<Range<usize>>,
    /// Filled only if the request has top-level fields whose fate depends on the target: unknown ones (`pass`), and a second field for
    /// the limit. Then every top-level member is listed here and none is in `cuts`: which comma goes with a member depends on which
    /// of its neighbours stay.
    pub members_by_target: Vec<(Range<usize>, MemberFate)>,
}

/// The fate of a top-level member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberFate {
    /// It goes upstream.
    Stays,
    /// It is removed.
    Goes,
    /// No table knows it: its place in [`Inspection::unknown`].
    Unknown(usize),
    /// A hint that some services refuse by its name: one of `HINTS`.
    Hint(&'static str),
    /// One of several fields for the output limit: it stays if the provider reads the limit here.
    Limit(&'static str),
}

impl MemberFate {
    /// The hint, if its customer is told that it was left out.
    fn told_hint(&self) -> Option<&'static str> {
        match self {
            Self::Hint(name) => Some(*name).filter(|name| hints::is_told(name)),
            _ => None,
        }
    }
}

/// The id of the customer that goes upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentCustomer<'a> {
    /// One of [`END_USER_FIELDS`](crate::END_USER_FIELDS): where the target reads it.
    pub field: &'a str,
    /// The id.
    pub id: &'a str,
}

/// Changes to make to a request on its way to one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edits<'a> {
    /// The upstream's name of the model.
    pub model: &'a str,
    /// The field in which the provider reads an output limit. The family's other fields for it are renamed or removed.
    pub limit_field: &'a str,
    /// The output limit for the provider; `None` keeps what was declared.
    pub limit: Option<u32>,
    /// What the target takes.
    pub fit: &'a TargetFit,
    /// The gateway has written the body itself, for this target: only what the operator drops is still left out.
    pub translated: bool,
    /// Fields of classes that are written where the request leaves the choice to the provider's account.
    pub pin: &'a [&'static str],
    /// The id of the customer, if the target is sent one.
    pub customer: Option<SentCustomer<'a>>,
}

/// The changes for a target that takes everything.
impl Default for Edits<'_> {
    fn default() -> Self {
        Self {
            model: "",
            limit_field: "",
            limit: None,
            fit: TargetFit::anything(),
            translated: false,
            pin: &[],
            customer: None,
        }
    }
}

/// A text's size, and what it weighed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextWeight {
    pub(crate) size: TextSize,
    weight: u64,
}

/// What the model will read, measured without keeping it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Content {
    /// Text of messages, system prompts, tool results and tool schemas.
    pub text: TextSize,
    /// The estimated number of tokens of that text.
    pub weight: Weight,
    /// A sample of it, for a tokenizer.
    pub sample: TextSample,
    /// Messages or input items.
    pub messages: u32,
    /// Texts of a call, each of which is read for itself; none in a conversation.
    pub inputs: u32,
    /// Tokens that the customer has made itself, of a call.
    pub tokens: u64,
    /// Tools offered.
    pub tools: u32,
    /// Bytes of their definitions.
    pub tool_bytes: u64,
    /// Pictures, also those inside tool results.
    pub pictures: Vec<Picture>,
    /// Documents.
    pub documents: Vec<Document>,
}

/// One picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Size in bytes of an inline picture, decoded; `None` for one given by URL.
    pub bytes: Option<u64>,
    /// Width and height in pixels, if the inline data has them.
    pub size: Option<(u32, u32)>,
    /// The image detail requested.
    pub detail: ImageDetail,
}

/// How closely a picture is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ImageDetail {
    /// The family's default.
    #[default]
    Auto,
    /// A fixed small cost.
    Low,
    /// Full size.
    High,
    /// As large as it was sent: OpenAI bills it without scaling it down.
    Original,
}

/// One inline document. Documents by URL are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Size in bytes, decoded.
    pub bytes: u64,
    /// The position in the body of its base64 text or `data:` URL, quotes included.
    pub place: Range<usize>,
    /// Tokens of its text and pages, once it has been read; `None` if it cannot be read.
    pub tokens: Option<u64>,
}

impl Inspection {
    /// Whether the usage of the answer gets `usage.cost`: on `/v1`, unless the customer wants none.
    pub fn shows_cost(&self, family: Family) -> bool {
        match family {
            Family::Chat | Family::Responses => !self.hides_cost,
            Family::Messages => false,
        }
    }

    /// Which of these fields are pinned: those that ask for nothing.
    pub fn pinned(&self, pin: &[&'static str]) -> Vec<&'static str> {
        let asks = |name: &str| {
            let mut places = self.places.classes.iter();
            places.any(|place| place.name == name && !place.idle)
        };
        pin.iter().copied().filter(|name| !asks(name)).collect()
    }

    /// Whether a field is one for the output limit.
    pub(crate) fn is_limit(&self, name: &str) -> bool {
        let places = &self.places;
        let declared = [&places.limit, &places.limit_twin].into_iter().flatten();
        let mut all = declared.chain(&places.nulls);
        all.any(|(field, _)| *field == name)
    }

    /// What is removed from the request for this target, for `x-farebox-removed`: tools, then fields, each once, in at most 1 KB. What
    /// its operator drops is a loss instead.
    pub fn removed(&self, fit: &TargetFit) -> String {
        let fields = self
            .unknown
            .iter()
            .filter(|name| !fit.pass.contains(name) && !fit.drops(name))
            .map(|name| header_safe(name));
        let fates = self.places.members_by_target.iter();
        let hints = fates
            .filter_map(|(_, fate)| fate.told_hint())
            .filter(|hint| !fit.abilities.takes(hint) && !fit.drops(hint));
        let mut named: Vec<&str> = Vec::new();
        let mut length = 0;
        for name in self
            .removed_tools
            .iter()
            .map(String::as_str)
            .chain(fields)
            .chain(hints)
        {
            if !named.contains(&name) && length + name.len() + 2 <= MOST_NAMED {
                length += name.len() + 2;
                named.push(name);
            }
        }
        named.join(", ")
    }

    /// The first unknown field that none of these lists passes.
    pub fn unsold(&self, passes: impl Fn(&str) -> bool) -> Option<&str> {
        self.unknown
            .iter()
            .map(String::as_str)
            .find(|name| !passes(name))
    }
}

/// The model that a body names, for the log, even if the rest of the body is refused. `None` if the body is not JSON up to there.
pub fn model_named(body: &[u8]) -> Option<String> {
    let mut cursor = Cursor::new(body).ok()?;
    let mut walk = cursor.enter_object().ok()?;
    while let Some(key) = cursor.member(&mut walk).ok()? {
        cursor.peek().ok()?;
        let value = cursor.skip().ok()?;
        if key.name == "model" {
            return cursor.text_of(&value).map(Cow::into_owned);
        }
    }
    None
}

/// A field's name as a header can show it.
fn header_safe(name: &str) -> &str {
    let plain = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    if plain && (1..=64).contains(&name.len()) {
        name
    } else {
        "(unnamed)"
    }
}

/// Shorter text costs little, however it is counted.
const SMALLEST_ODD: u64 = 1_024;

impl Content {
    /// Adds text: its size, and its JSON form.
    pub(crate) fn read(&mut self, size: TextSize, text: &str) {
        self.text.add(size);
        self.weight.add(text);
        self.sample.add(text);
    }

    /// Adds a text that a call's model reads for itself.
    pub(crate) fn input(&mut self, size: TextSize, text: &str) -> TextWeight {
        let before = self.weight;
        if self.inputs > 0 {
            // A tokenizer would join what stands in two texts.
            self.read(TextSize { ascii: 1, other: 0 }, " ");
        }
        self.inputs = self.inputs.saturating_add(1);
        self.read(size, text);
        TextWeight {
            size,
            weight: self.weight.since(&before, size.bytes()),
        }
    }

    /// Adds a text that the model reads so many times more. A sample of it is as it was.
    pub(crate) fn input_again(&mut self, again: TextWeight, times: u32) {
        self.inputs = self.inputs.saturating_add(times);
        let TextSize { ascii, other } = again.size;
        let [ascii, other, weight] =
            [ascii, other, again.weight].map(|one| one.saturating_mul(times.into()));
        self.text.add(TextSize { ascii, other });
        self.weight.add_weighed(weight);
    }

    /// Adds the text of an inline file, which is not in JSON form: its backslashes would be doubled there.
    pub(crate) fn file(&mut self, text: &str) {
        let escaped = text.replace('\\', r"\\");
        self.read(TextSize::of(&escaped), &escaped);
    }

    /// Whether the fast estimate can be far too low for this text: long, and largely in scripts or symbols that take a token for
    /// each character or byte.
    pub fn is_odd(&self) -> bool {
        self.text.bytes() >= SMALLEST_ODD && self.sample.is_odd()
    }

    /// Adds reasoning that only its provider can read.
    pub(crate) fn sealed(&mut self, bytes: u64) {
        self.text.add(TextSize {
            ascii: bytes,
            other: 0,
        });
        self.weight.add_sealed(bytes);
    }

    /// Adds a member's name: a long one is text.
    pub(crate) fn name(&mut self, name: &str) {
        if name.len() > LONGEST_NAME {
            self.read(TextSize::of(name), name);
        }
    }

    /// Adds bytes of text that cannot be read here.
    pub(crate) fn unread(&mut self, bytes: u64) {
        self.text.add(TextSize {
            ascii: bytes,
            other: 0,
        });
        self.weight.add_unread(bytes);
    }
}
