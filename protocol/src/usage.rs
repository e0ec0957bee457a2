//! Token classes and the law that makes them disjoint.
//!
//! A [`WireUsage`] is what an upstream wrote, field by field; [`WireUsage::reading`] turns it into disjoint counts. One reader per
//! family fills it, from the upstream's own frames, by that family's table of names. Counts are never guessed here.

mod cost;

use std::ops::Range;

pub use cost::{CostField, SaidCosts};

use crate::class::{self, ClassField, SaidClasses};
use crate::json::{Cursor, JsonError, Kind, Value, string_span};
use crate::members::{Inside, MemberPlaces, Members, Own};

/// Disjoint counts: no token is in two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReportedUsage {
    /// Fresh input: neither read from nor written to a cache.
    pub input: u64,
    /// Input read from a cache.
    pub cache_read: u64,
    /// Input written to a cache for the default time.
    pub cache_write: u64,
    /// Input written to a cache for one hour.
    pub cache_write_1h: u64,
    /// Input written to a cache for twelve hours.
    pub cache_write_12h: u64,
    /// Output that is not reasoning.
    pub output: u64,
    /// Output that is reasoning, which may have a price of its own.
    pub reasoning: u64,
}

/// The upstream's counts, merged over frames. `None`: never reported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WireUsage {
    /// Input as the family counts it.
    pub input: Option<u64>,
    /// Read from a cache.
    pub cache_read: Option<u64>,
    /// Written to a cache, all durations.
    pub cache_write: Option<u64>,
    /// The part of it for one hour.
    pub cache_write_1h: Option<u64>,
    /// The part of it for twelve hours.
    pub cache_write_12h: Option<u64>,
    /// The writes are divided by their lifetimes, here and in every step; else they may have had any.
    pub writes_divided: bool,
    /// Output as the family counts it.
    pub output: Option<u64>,
    /// Reasoning: a part of `output`, or beside it, as `total` reveals.
    pub reasoning: Option<u64>,
    /// The total, which reveals where reasoning is counted.
    pub total: Option<u64>,
    /// Steps that the other counts leave out: the upstream compacted the conversation.
    pub compactions: Vec<ReportedUsage>,
    /// The answer's own steps, which the other counts contain.
    pub steps: Vec<ReportedUsage>,
    /// Steps of other models, which the other counts leave out.
    pub foreign: Vec<ReportedUsage>,
    /// Some step was another model's.
    pub other_models: bool,
    /// The classes that were served, as far as the answer says.
    pub said: SaidClasses,
    /// What is said about the answer's cost.
    pub costs: SaidCosts,
    /// Whether `input` contains the cached classes (chat and responses) or is reported beside them (messages).
    pub input_is_total: bool,
    /// Some count was not a non-negative integer.
    pub malformed: bool,
}

/// A usage that can be priced, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageReading {
    /// The upstream never reported any input or output.
    Missing,
    /// Disjoint counts.
    Counted(ReportedUsage),
    /// A negative or fractional count, or more cached tokens than input.
    Absurd,
}

impl WireUsage {
    /// Merges a later frame: the last non-null value wins, and zero never replaces a positive one. Only beside a compaction it does:
    /// an answer that is nothing else has no counts of its own, although the stream may have begun with the prompt's.
    pub fn merge(&mut self, later: &Self) {
        let replace: fn(&mut Option<u64>, Option<u64>) = |slot, count| *slot = count.or(*slot);
        let fill = if later.compactions.is_empty() {
            fill
        } else {
            replace
        };
        fill(&mut self.input, later.input);
        fill(&mut self.cache_read, later.cache_read);
        fill(&mut self.cache_write, later.cache_write);
        fill(&mut self.cache_write_1h, later.cache_write_1h);
        fill(&mut self.cache_write_12h, later.cache_write_12h);
        fill(&mut self.output, later.output);
        fill(&mut self.reasoning, later.reasoning);
        fill(&mut self.total, later.total);
        for (list, later) in [
            (&mut self.compactions, &later.compactions),
            (&mut self.steps, &later.steps),
            (&mut self.foreign, &later.foreign),
        ] {
            if !later.is_empty() {
                list.clone_from(later);
            }
        }
        self.input_is_total |= later.input_is_total;
        self.malformed |= later.malformed;
        self.writes_divided |= later.writes_divided;
        self.other_models |= later.other_models;
        self.said.fill(&later.said);
        self.costs.merge(&later.costs);
    }

    /// Disjoint counts, or why there are none. `reasoning_outside`: the provider counts reasoning in addition to its output. Gemini
    /// does, and never names it: then only the total includes it.
    pub fn reading(&self, reasoning_outside: bool) -> UsageReading {
        if self.malformed {
            return UsageReading::Absurd;
        }
        let (Some(input), Some(output)) = (self.input, self.output) else {
            return UsageReading::Missing;
        };
        let answer = self.disjoint(
            input,
            output,
            reasoning_outside || self.total_has_reasoning_outside(),
        );
        let all = answer
            .and_then(|answer| sum(&self.compactions, answer))
            .and_then(|answer| sum(&self.foreign, answer));
        all.map_or(UsageReading::Absurd, UsageReading::Counted)
    }

    /// The steps of a usage with these counts that the upstream prices separately from the first: compactions, and the answer's
    /// further steps if all steps together are these counts.
    pub fn further_steps(&self, counted: &ReportedUsage) -> Vec<ReportedUsage> {
        let complete = sum(&self.compactions, ReportedUsage::default())
            .and_then(|all| sum(&self.foreign, all))
            .and_then(|all| sum(&self.steps, all))
            == Some(*counted);
        let further = if complete { self.steps.get(1..) } else { None };
        [
            &self.compactions,
            further.unwrap_or_default(),
            &self.foreign,
        ]
        .concat()
    }

    /// Whether the total shows that reasoning is counted in addition to the output.
    pub fn total_has_reasoning_outside(&self) -> bool {
        let sum =
            |input: u64, output: u64, reasoning| input.checked_add(output)?.checked_add(reasoning);
        let (Some(input), Some(output), Some(reasoning @ 1..)) =
            (self.input, self.output, self.reasoning)
        else {
            return false;
        };
        self.total.is_some() && self.total == sum(input, output, reasoning)
    }

    /// As much of an impossible count as can be understood: the input, and the output with its reasoning.
    pub fn claimed(&self) -> ReportedUsage {
        let [input, output, reasoning] =
            [self.input, self.output, self.reasoning].map(|count| count.unwrap_or(0));
        let [cache_read, written, one_hour, half_day] = self.cached();
        let cached = if self.input_is_total {
            cache_read.saturating_add(written)
        } else {
            0
        };
        let cache_write = written.saturating_sub(one_hour).saturating_sub(half_day);
        let output = output.saturating_sub(reasoning);
        ReportedUsage {
            input: input.saturating_sub(cached),
            cache_read,
            cache_write,
            cache_write_1h: one_hour,
            cache_write_12h: half_day,
            output,
            reasoning,
        }
    }

    /// Input read from a cache, and written to one: in all, and the parts with a longer lifetime.
    fn cached(&self) -> [u64; 4] {
        [
            self.cache_read,
            self.cache_write,
            self.cache_write_1h,
            self.cache_write_12h,
        ]
        .map(|count| count.unwrap_or(0))
    }

    fn disjoint(&self, input: u64, output: u64, reasoning_outside: bool) -> Option<ReportedUsage> {
        let [cache_read, written, cache_write_1h, cache_write_12h] = self.cached();
        let reasoning = match self.reasoning {
            None | Some(0) if reasoning_outside => self
                .total
                .unwrap_or(0)
                .saturating_sub(input.checked_add(output)?),
            named => named.unwrap_or(0),
        };
        let cached = cache_read.checked_add(written)?;
        Some(ReportedUsage {
            input: if self.input_is_total {
                input.checked_sub(cached)?
            } else {
                input
            },
            cache_read,
            cache_write: written
                .checked_sub(cache_write_1h)?
                .checked_sub(cache_write_12h)?,
            cache_write_1h,
            cache_write_12h,
            output: if reasoning_outside {
                output
            } else {
                output.checked_sub(reasoning)?
            },
            reasoning,
        })
    }
}

impl ReportedUsage {
    /// All input, cached or not.
    pub fn all_input(&self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.all_writes())
    }

    /// All input written to a cache, for whatever time.
    pub fn all_writes(&self) -> u64 {
        self.cache_write
            .saturating_add(self.cache_write_1h)
            .saturating_add(self.cache_write_12h)
    }

    /// Both together; `None` when a count overflows.
    #[must_use]
    pub fn plus(&self, more: &Self) -> Option<Self> {
        Some(Self {
            input: self.input.checked_add(more.input)?,
            cache_read: self.cache_read.checked_add(more.cache_read)?,
            cache_write: self.cache_write.checked_add(more.cache_write)?,
            cache_write_1h: self.cache_write_1h.checked_add(more.cache_write_1h)?,
            cache_write_12h: self.cache_write_12h.checked_add(more.cache_write_12h)?,
            output: self.output.checked_add(more.output)?,
            reasoning: self.reasoning.checked_add(more.reasoning)?,
        })
    }

    /// All output, reasoning included.
    pub fn all_output(&self) -> u64 {
        self.output.saturating_add(self.reasoning)
    }
}

fn sum(steps: &[ReportedUsage], first: ReportedUsage) -> Option<ReportedUsage> {
    steps.iter().try_fold(first, |sum, step| sum.plus(step))
}

fn fill(slot: &mut Option<u64>, later: Option<u64>) {
    match (*slot, later) {
        (Some(1..), Some(0)) | (_, None) => {}
        (_, Some(_)) => *slot = later,
    }
}

/// What a name in a usage object counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsageSlot {
    Input,
    CacheRead,
    CacheWrite,
    CacheWrite5m,
    CacheWrite1h,
    CacheWrite12h,
    /// What the provider says that the answer costs: in USD, in ticks of 1e-10 USD, at the service behind it with one's own key.
    Cost,
    CostTicks,
    CostBehind,
    IsByok,
    Output,
    Reasoning,
    Total,
}

/// One family's names: the object that contains a count (empty: the usage object itself), its name, what it counts.
pub(crate) type UsageNames = [(&'static str, &'static str, UsageSlot)];

/// A usage object found in a text.
#[derive(Debug, Default)]
pub(crate) struct UsageObject {
    /// The kind of step it counts, inside `iterations`.
    kind: Option<Range<usize>>,
    pub(crate) wire: WireUsage,
    /// Position of its closing brace.
    pub(crate) end: usize,
    /// It has no members that customers see.
    pub(crate) empty: bool,
    /// Members to hide from customers, including those in its steps.
    pub(crate) places: MemberPlaces,
}

/// Most steps in one usage. Server-side tools stop after ten rounds, each of which may begin with a compaction.
const MOST_STEPS: usize = 32;

/// Steps of other models than the one that was asked for.
const OF_OTHERS: [&str; 2] = ["advisor_message", "fallback_message"];

/// Members of the objects inside a usage object, in any family.
fn of_details(name: &str) -> Option<Inside> {
    match name {
        "cached_tokens"
        | "reasoning_tokens"
        | "audio_tokens"
        | "text_tokens"
        | "image_tokens"
        | "accepted_prediction_tokens"
        | "rejected_prediction_tokens"
        | "thinking_tokens"
        | "cache_write_tokens"
        | "cache_write_tokens_details"
        | "cache_creation_tokens"
        | "cache_creation_input_tokens"
        | "cache_creation_token_details"
        | "ephemeral_5m_input_tokens"
        | "ephemeral_1h_input_tokens"
        | "ephemeral_12h_input_tokens"
        | "ttl_5m_tokens"
        | "ttl_30m_tokens"
        | "ttl_1h_tokens"
        | "ttl_12h_tokens"
        | "web_search_requests"
        | "web_fetch_requests"
        | "remove_to_redeem"
        | "status"
        | "reason"
        | "type" => Some(Inside::Anything),
        _ => None,
    }
}

/// The words among them: elsewhere a word in a usage is a note of the provider's.
const WORDS: [&str; 4] = ["status", "reason", "type", "remove_to_redeem"];

/// A family's names, the members that customers see, and those that name a class.
pub(crate) type UsageTable<'t> = (&'t UsageNames, Own, &'t [ClassField]);

/// Reads a usage object; `None` if the value is something else, such as `null`.
pub(crate) fn read(
    cursor: &mut Cursor<'_>,
    (names, own, classes): UsageTable<'_>,
) -> Result<Option<UsageObject>, JsonError> {
    if cursor.peek()? != Kind::Object {
        cursor.skip()?;
        return Ok(None);
    }
    let mut seen = UsageObject::default();
    let mut members = Members::of(own, own);
    let mut write_5m = None;
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        match (key.name.as_ref(), cursor.peek()?) {
            ("type", _) => seen.kind = string_span(cursor)?,
            ("iterations", Kind::Array) => {
                iterations(cursor, (names, own, classes), &mut seen)?;
            }
            (name, _) if class::say(classes, name, cursor, &mut seen.wire.said)? => {}
            (name, _) => take(cursor, names, ("", name), &mut seen, &mut write_5m)?,
        }
        members.take(cursor, &key);
    }
    seen.end = cursor.at().saturating_sub(1);
    seen.empty = members.nothing_stays();
    members.finish(&mut seen.places);
    let wire = &mut seen.wire;
    let parts = [write_5m, wire.cache_write_1h, wire.cache_write_12h];
    if parts.iter().any(Option::is_some) {
        let add = |sum: u64, part: &Option<u64>| sum.checked_add(part.unwrap_or(0));
        let sum = parts.iter().try_fold(0, add);
        wire.cache_write = wire.cache_write.or(sum);
        // Without the usual lifetime among the parts, the rest is that.
        wire.writes_divided = write_5m.is_none() || sum >= wire.cache_write;
    }
    place_foreign(wire);
    Ok(Some(seen))
}

/// Counts of single steps. The answer's counts already contain those of its own steps, but not those of a compaction.
fn iterations(
    cursor: &mut Cursor<'_>,
    table: UsageTable<'_>,
    seen: &mut UsageObject,
) -> Result<(), JsonError> {
    let wire = &mut seen.wire;
    let mut walk = cursor.enter_array()?;
    while cursor.element(&mut walk)? {
        let Some(step) = read(cursor, table)? else {
            continue;
        };
        seen.places.add(step.places);
        let kind = step.kind.map(|kind| cursor.string_at(kind));
        let compaction = kind.as_deref() == Some("compaction");
        let foreign = kind.is_some_and(|kind| OF_OTHERS.contains(&&*kind));
        let lists = [&wire.compactions, &wire.steps, &wire.foreign];
        let many = lists.iter().map(|list| list.len()).sum::<usize>() >= MOST_STEPS;
        match step.wire.reading(false) {
            _ if many => wire.malformed = true,
            UsageReading::Counted(usage) if foreign => wire.foreign.push(usage),
            UsageReading::Counted(usage) if compaction => wire.compactions.push(usage),
            UsageReading::Counted(usage) => wire.steps.push(usage),
            _ => wire.malformed |= compaction,
        }
    }
    Ok(())
}

/// Counts steps of other models beside the answer's own, unless its counts contain them.
fn place_foreign(wire: &mut WireUsage) {
    if wire.foreign.is_empty() {
        return;
    }
    wire.other_models = true;
    let (Some(input), Some(output)) = (wire.input, wire.output) else {
        return;
    };
    let top = wire.disjoint(input, output, false);
    let foreign = sum(&wire.foreign, ReportedUsage::default());
    let all = foreign.and_then(|foreign| sum(&wire.steps, foreign));
    if top.is_some() && (top == foreign || top == all) {
        wire.steps.append(&mut wire.foreign);
    }
}

/// Takes one member: a count, or an object with counts inside.
fn take(
    cursor: &mut Cursor<'_>,
    names: &UsageNames,
    path: (&str, &str),
    seen: &mut UsageObject,
    write_5m: &mut Option<u64>,
) -> Result<(), JsonError> {
    if cursor.peek()? == Kind::Object {
        let mut members = Members::inside(of_details);
        let mut walk = cursor.enter_object()?;
        while let Some(key) = cursor.member(&mut walk)? {
            let kind = cursor.peek()?;
            take(cursor, names, (path.1, &key.name), seen, write_5m)?;
            match kind {
                Kind::String | Kind::Array if !WORDS.contains(&&*key.name) => {
                    members.refuse(cursor, &key);
                }
                _ => members.take(cursor, &key),
            }
        }
        members.finish(&mut seen.places);
        return Ok(());
    }
    let value = cursor.skip()?;
    // The inner name first, because most outer ones are alike.
    let Some((_, _, slot)) = names
        .iter()
        .find(|(outer, inner, _)| (*inner, *outer) == (path.1, path.0))
    else {
        return Ok(());
    };
    if value.kind == Kind::Null {
        return Ok(());
    }
    if (seen.wire.costs).take(*slot, cursor.slice(value.span.clone())) {
        return Ok(());
    }
    let (count, wire) = (count(cursor, &value), &mut seen.wire);
    // Nothing is billed by the total: without it, only where reasoning is counted stays unknown.
    wire.malformed |= count.is_none() && *slot != UsageSlot::Total;
    let place = match slot {
        UsageSlot::Input => &mut wire.input,
        UsageSlot::CacheRead => &mut wire.cache_read,
        UsageSlot::CacheWrite => &mut wire.cache_write,
        UsageSlot::CacheWrite5m => write_5m,
        UsageSlot::CacheWrite1h => &mut wire.cache_write_1h,
        UsageSlot::CacheWrite12h => &mut wire.cache_write_12h,
        // Taken above: they are no counts.
        UsageSlot::Cost | UsageSlot::CostTicks | UsageSlot::CostBehind | UsageSlot::IsByok => {
            return Ok(());
        }
        UsageSlot::Output => &mut wire.output,
        UsageSlot::Reasoning => &mut wire.reasoning,
        UsageSlot::Total => &mut wire.total,
    };
    fill(place, count);
    Ok(())
}

/// A non-negative integer written as one.
pub(crate) fn count(cursor: &Cursor<'_>, value: &Value) -> Option<u64> {
    if value.kind != Kind::Number {
        return None;
    }
    // Every chunk has some, of one digit mostly.
    let digits = cursor.slice(value.span.clone()).bytes();
    digits.into_iter().try_fold(0_u64, |sum, byte| {
        let digit = char::from(byte).to_digit(10)?;
        sum.checked_mul(10)?.checked_add(digit.into())
    })
}

/// Adds `cost`, a decimal literal, to a usage object.
pub(crate) fn with_cost(usage: String, cost: Option<&str>) -> String {
    match (cost, usage.strip_suffix('}')) {
        (Some(cost), Some(open)) => format!("{open},\"cost\":{cost}}}"),
        _ => usage,
    }
}
