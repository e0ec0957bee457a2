//! The order of a conversation: turns histories of any shape into one that every family accepts.
//!
//! Results follow directly after their calls, in the order of the calls; anything in between moves after them, and empty turns are
//! dropped. Every repair depends only on earlier turns, so that the next request begins with the same bytes and hits the prompt
//! cache. Exceptions: the last turn, and a result that arrives after later turns.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use super::ids;
use super::losses::Losses;
use super::neutral::{CallResult, NeutralBlock, NeutralCall, NeutralTurn, Role};
use super::text::Escaped;

/// The target's requirements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// System messages may stay between turns.
    pub(crate) system_midway: bool,
    /// A last assistant turn may be continued.
    pub(crate) prefill: bool,
    /// The conversation must begin with a user turn.
    pub(crate) user_first: bool,
    /// Text of only white space is refused.
    pub(crate) no_blank_text: bool,
}

/// The conversation in the form that the target accepts: roles alternate, nothing is empty.
pub(crate) fn arrange<'a>(
    turns: Vec<NeutralTurn<'a>>,
    rules: Rules,
    losses: &mut Losses,
) -> Vec<NeutralTurn<'a>> {
    // Taken before the repairs: whether the customer wanted the last turn continued is what was sent, not what is left of it.
    let ends_with_user = turns
        .last()
        .is_some_and(|turn| turn.role != Role::Assistant);
    let turns = paired(merged(turns));
    let mut turns = merged(
        turns
            .into_iter()
            .filter_map(|turn| cleaned(turn, rules))
            .collect(),
    );
    match turns.last_mut() {
        Some(NeutralTurn {
            role: Role::Assistant,
            ..
        // The customer's last turn was dropped as empty. It was no prefill, so nothing is lost.
        }) if ends_with_user => turns.push(user("(continue)")),
        Some(NeutralTurn {
            role: Role::Assistant,
            blocks,
        }) if rules.prefill => trim_last(blocks),
        Some(NeutralTurn {
            role: Role::Assistant,
            ..
        }) => {
            // Models without prefill reject a last turn of their own. Asked to continue they come close, but may begin anew,
            // which the customer must know.
            losses.add("prefill", "continued");
            turns.push(user("(continue)"));
        }
        None => turns.push(user("(continue)")),
        _ => {}
    }
    if rules.user_first
        && turns
            .first()
            .is_some_and(|turn| turn.role == Role::Assistant)
    {
        // Dropping the turn instead would take away what the model said, and with it the sense of the next question.
        turns.insert(0, user("(conversation so far)"));
    }
    turns
}

fn user(words: &str) -> NeutralTurn<'static> {
    NeutralTurn {
        role: Role::User,
        blocks: vec![NeutralBlock::words(words)],
    }
}

/// Merges neighbouring turns of the same role.
fn merged(turns: Vec<NeutralTurn<'_>>) -> Vec<NeutralTurn<'_>> {
    let mut out: Vec<NeutralTurn<'_>> = Vec::with_capacity(turns.len());
    for turn in turns {
        match out.last_mut() {
            Some(last) if last.role == turn.role => last.blocks.extend(turn.blocks),
            _ => out.push(turn),
        }
    }
    out
}

/// A turn without empty blocks; a system message becomes a user message if the target does not allow one. Thinking alone is not a
/// turn.
fn cleaned<'a>(mut turn: NeutralTurn<'a>, rules: Rules) -> Option<NeutralTurn<'a>> {
    turn.blocks.retain(|block| match block {
        NeutralBlock::Text { text, .. } => {
            !(text.is_empty() || rules.no_blank_text && text.is_blank())
        }
        NeutralBlock::Thinking { text } => !text.is_empty(),
        _ => true,
    });
    if turn.role == Role::System && !rules.system_midway {
        turn.role = Role::User;
        turn.blocks = turn.blocks.into_iter().map(reminder).collect();
    }
    turn.blocks
        .iter()
        // Vendors reject a turn of nothing but thinking as empty.
        .any(|block| !matches!(block, NeutralBlock::Thinking { .. }))
        .then_some(turn)
}

/// A system message in the form of a user message.
fn reminder(block: NeutralBlock<'_>) -> NeutralBlock<'_> {
    match block {
        NeutralBlock::Text { text, cache } => {
            // The mark that native clients themselves put around the system's words in a user's turn.
            let text = format!("<system-reminder>\\n{}\\n</system-reminder>", text.as_str());
            NeutralBlock::Text {
                text: Escaped::raw(text),
                cache,
            }
        }
        other => other,
    }
}

fn trim_last(blocks: &mut Vec<NeutralBlock<'_>>) {
    if let Some(NeutralBlock::Text { text, cache }) =
        blocks.pop_if(|block| matches!(block, NeutralBlock::Text { .. }))
    {
        blocks.push(NeutralBlock::Text {
            text: text.trimmed_end(),
            cache,
        });
    }
}

/// Pairs calls and results.
#[derive(Default)]
struct Pairs<'a> {
    /// Ids already used.
    given: HashSet<String>,
    /// Calls that wait for a result, by the client's id: the turn and the calls' numbers. A later turn takes an id over.
    waiting: HashMap<String, (usize, VecDeque<usize>)>,
    /// For each call: its id, and its result once found.
    calls: Vec<(String, Option<CallResult<'a>>)>,
}

fn paired(turns: Vec<NeutralTurn<'_>>) -> Vec<NeutralTurn<'_>> {
    let mut pairs = Pairs::default();
    let taken: Vec<NeutralTurn<'_>> = turns
        .into_iter()
        .enumerate()
        .map(|(number, turn)| {
            let mut blocks = Vec::with_capacity(turn.blocks.len());
            for (position, block) in turn.blocks.into_iter().enumerate() {
                pairs.take(block, (number, position), &mut blocks);
            }
            NeutralTurn {
                role: turn.role,
                blocks,
            }
        })
        .collect();
    let mut calls = pairs.calls.into_iter();
    let mut out = Vec::with_capacity(taken.len() * 2);
    for turn in taken {
        let count = turn
            .blocks
            .iter()
            .filter(|block| matches!(block, NeutralBlock::Call(_)))
            .count();
        out.push(turn);
        if count > 0 {
            let results = calls.by_ref().take(count).map(|(id, result)| {
                NeutralBlock::Result(result.unwrap_or_else(|| interrupted(id)))
            });
            out.push(NeutralTurn {
                role: Role::User,
                blocks: results.collect(),
            });
        }
    }
    out
}

fn interrupted(id: String) -> CallResult<'static> {
    // Every call needs a result. An interrupted client has none to send, and refusing it would make the conversation unusable.
    let blocks = vec![NeutralBlock::words("(no output: the call was interrupted)")];
    CallResult {
        id: Cow::Owned(id),
        blocks,
        is_error: false,
        cache: None,
    }
}

impl<'a> Pairs<'a> {
    fn take(
        &mut self,
        block: NeutralBlock<'a>,
        place: (usize, usize),
        out: &mut Vec<NeutralBlock<'a>>,
    ) {
        match block {
            NeutralBlock::Call(call) => out.push(NeutralBlock::Call(self.call(call, place))),
            NeutralBlock::Result(result) => self.result(result, out),
            other => out.push(other),
        }
    }

    fn call(
        &mut self,
        mut call: NeutralCall<'a>,
        (turn, position): (usize, usize),
    ) -> NeutralCall<'a> {
        let number = self.calls.len();
        let asked = call.id.to_string();
        // Some models number their calls anew in every turn. Vendors reject a repeated id, and results would go to the wrong
        // call.
        if asked.is_empty() || self.given.contains(&asked) {
            call.id = Cow::Owned(ids::made_id(&[
                &asked,
                &turn.to_string(),
                &position.to_string(),
            ]));
        }
        self.given.insert(call.id.to_string());
        self.calls.push((call.id.to_string(), None));
        let waiting = self.waiting.entry(asked).or_insert((turn, VecDeque::new()));
        // A result means the nearest call before it; an older one of the same id stays unanswered.
        if waiting.0 != turn {
            *waiting = (turn, VecDeque::new());
        }
        waiting.1.push_back(number);
        call
    }

    /// A result goes to its call; one without a call becomes text where it stands.
    fn result(&mut self, mut result: CallResult<'a>, out: &mut Vec<NeutralBlock<'a>>) {
        let number = self
            .waiting
            .get_mut(result.id.as_ref())
            .and_then(|(_, calls)| calls.pop_front());
        let Some((id, slot)) = number.and_then(|number| self.calls.get_mut(number)) else {
            out.push(NeutralBlock::words(&format!(
                "[result of tool call {}]",
                result.id
            )));
            out.append(&mut result.blocks);
            return;
        };
        result.id = Cow::Owned(id.clone());
        *slot = Some(result);
    }
}
