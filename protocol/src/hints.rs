//! Fields that ask for nothing that a customer would miss in the answer. Some services refuse their names.

const HINTS: [&str; 7] = [
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "store",
    "stream_options",
    "user",
];

/// Hints of a family that other families know as something else.
const SPARE: [&str; 3] = ["frequency_penalty", "metadata", "presence_penalty"];

/// The hint of this name.
pub(crate) fn hint(name: &str) -> Option<&'static str> {
    HINTS.into_iter().find(|hint| *hint == name)
}

/// The hint of this name, in a family that says that it is one.
pub(crate) fn spare(name: &str) -> Option<&'static str> {
    SPARE.into_iter().find(|hint| *hint == name)
}

/// Whether the customer is told that it was left out: usage is reported and nothing is stored whatever the provider is told,
/// and a penalty that is a hint is 0.
pub(crate) fn is_told(hint: &str) -> bool {
    !matches!(
        hint,
        "stream_options" | "store" | "frequency_penalty" | "presence_penalty"
    )
}
