//! What a meter knows of its request before the answer begins.

use farebox_protocol::Classes;

use crate::metering::Lifetimes;

/// The initial values of a meter.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    /// What the input probably is, in tokens: charged where nobody counts.
    pub estimated_input: u64,
    /// The most input that a provider can count.
    pub most_input: u64,
    /// Pictures in the request.
    pub images: u64,
    /// Most output the upstream may produce, all choices together.
    pub output_limit: u64,
    /// Number of answers requested.
    pub choices: u64,
    /// Tokens that the customer predicts, for all answers together.
    pub predicted: u64,
    /// The lifetimes of cache writes that the request asked for.
    pub lifetimes: Lifetimes,
    /// The classes that it asked for.
    pub classes: Classes,
}
