//! Which members of an answer, or of an object inside it that names the model, customers see.
//!
//! What says who served the answer goes. Of a name that stands twice, clients read the last and others the first: the second
//! `model` goes, and the first becomes the public slug.

use std::ops::Range;

use crate::json::Cuts;

/// Members that identify the provider, its account, or its request.
const IDENTIFYING: [&str; 3] = ["provider", "request_id", "x_groq"];

/// Notes the members of one object in their order.
#[derive(Default)]
pub(crate) struct Members {
    cuts: Cuts,
    model: bool,
}

impl Members {
    /// The next member.
    pub(crate) fn take(&mut self, name: &str, span: Range<usize>) {
        let again = name == "model" && std::mem::replace(&mut self.model, true);
        self.cuts.take(span, !again && !IDENTIFYING.contains(&name));
    }

    /// What is taken out.
    pub(crate) fn finish(self) -> Vec<Range<usize>> {
        self.cuts.finish()
    }
}
