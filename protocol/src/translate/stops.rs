//! Ends an answer at the caller's stop strings where its target knows none: the text is cut before the first match, also if the
//! match is spread over several frames.

use crate::json::unescape;

use super::text::escape;

/// Watches the text of one answer.
#[derive(Debug, Default)]
pub(crate) struct Stops {
    list: Vec<String>,
    /// The end of the text so far, if a stop string may begin with it. Unescaped.
    held: String,
}

impl Stops {
    pub(crate) fn new(list: &[String]) -> Self {
        Self {
            list: list.to_vec(),
            held: String::new(),
        }
    }

    /// Whether there is nothing to watch for.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The next piece of text; what may be shown of it goes to `out`. Both are escaped. Returns the stop string that ends the text,
    /// escaped; of several the one that begins first.
    pub(crate) fn push(&mut self, piece: &str, out: &mut String) -> Option<String> {
        self.held.push_str(&unescape(piece));
        let first = self
            .list
            .iter()
            .filter_map(|stop| Some((self.held.find(stop.as_str())?, stop)))
            // The earliest match, as a vendor that generates token by token would have stopped.
            .min_by_key(|(at, _)| *at);
        if let Some((at, stop)) = first {
            let found = escape(stop);
            self.held.truncate(at);
            self.flush(out);
            return Some(found);
        }
        // What may be the beginning of a stop string is held back until the next piece decides: once sent, it cannot be taken
        // back.
        let begun = self.list.iter().map(|stop| self.begun(stop)).max();
        let shown = self.held.len() - begun.unwrap_or(0);
        let rest = self.held.split_off(shown);
        self.flush(out);
        self.held = rest;
        None
    }

    /// The text ends here: nothing is held back any longer.
    pub(crate) fn flush(&mut self, out: &mut String) {
        out.push_str(&escape(&self.held));
        self.held.clear();
    }

    /// How many bytes at the end of the text may be the beginning of this stop string.
    fn begun(&self, stop: &str) -> usize {
        stop.char_indices()
            .map(|(at, _)| at)
            .rfind(|at| self.held.ends_with(&stop[..*at]))
            .unwrap_or(0)
    }
}
