//! Prompt cache marks in a messages request: at most four, long ones before short ones.
//!
//! If there are more, those of the last tool, of the last system block and of the last two places in the conversation stay. A long
//! mark without a price becomes a short one.

use crate::translate::encode::Encoding;
use crate::translate::losses::Losses;
use crate::translate::neutral::{Cache, NeutralBlock, NeutralPrompt, NeutralTurn, Role};
use crate::translate::text::JsonWriter;

/// Most marks the family accepts.
const MOST: usize = 4;

/// Decides which marks are written, in the order in which they are met.
#[derive(Debug, Default)]
pub(super) struct MarkRules {
    /// For each mark still to be met: whether it stays, and for how long.
    kept: std::vec::IntoIter<Option<Cache>>,
    /// The whole request is marked, because it had no marks of its own.
    pub(super) automatic: bool,
}

impl MarkRules {
    /// The marks of a request. Turns are met in their own order, so a mark counts where its block stands now.
    pub(super) fn of(
        prompt: &NeutralPrompt<'_>,
        turns: &[NeutralTurn<'_>],
        encoding: &mut Encoding<'_>,
    ) -> Self {
        let tools: Vec<Cache> = prompt.tools.iter().filter_map(|tool| tool.cache).collect();
        let system: Vec<Cache> = prompt
            .system
            .iter()
            .filter(|block| is_written(block))
            .filter_map(NeutralBlock::cache)
            .collect();
        let talk: Vec<Cache> = turns
            .iter()
            .flat_map(|turn| &turn.blocks)
            .filter(|block| is_written(block))
            .filter_map(NeutralBlock::cache)
            .collect();
        let all = tools.len() + system.len() + talk.len();
        let long = encoding.abilities().long_cache;
        let answered = turns.iter().any(|turn| turn.role == Role::Assistant);
        let automatic = all == 0 && answered && encoding.abilities().auto_cache;
        let mut short = false;
        let mut kept = Vec::with_capacity(all);
        for (list, last) in [(tools, 1), (system, 1), (talk, 2)] {
            let from = if all > MOST {
                list.len().saturating_sub(last)
            } else {
                0
            };
            for (at, cache) in list.into_iter().enumerate() {
                let stays = at >= from;
                kept.push(stays.then(|| fitting(cache, long, &mut short, encoding.losses)));
                encoding.lost(!stays, "cache_control");
            }
        }
        Self {
            kept: kept.into_iter(),
            automatic,
        }
    }

    /// Writes the next mark, if its place has one.
    pub(super) fn write(&mut self, out: &mut JsonWriter, cache: Option<Cache>) {
        match cache.and_then(|_| self.kept.next()).flatten() {
            None => {}
            Some(Cache::Short) => out.name("cache_control").raw(r#"{"type":"ephemeral"}"#),
            Some(Cache::Long) => out
                .name("cache_control")
                .raw(r#"{"type":"ephemeral","ttl":"1h"}"#),
        }
    }
}

/// Whether the block is written at all: an empty text cannot be marked.
fn is_written(block: &NeutralBlock<'_>) -> bool {
    !matches!(block, NeutralBlock::Text { text, .. } if text.is_blank())
}

fn fitting(cache: Cache, long: bool, short: &mut bool, losses: &mut Losses) -> Cache {
    if cache == Cache::Long && (!long || *short) {
        losses.add("cache_control.ttl", "shortened");
        return Cache::Short;
    }
    *short |= cache == Cache::Short;
    cache
}
