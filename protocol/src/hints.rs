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

/// The hint of this name.
pub(crate) fn hint(name: &str) -> Option<&'static str> {
    HINTS.into_iter().find(|hint| *hint == name)
}

/// Whether the customer is told that it was left out: usage is reported and nothing is stored whatever the provider is told.
pub(crate) fn is_told(hint: &str) -> bool {
    !matches!(hint, "stream_options" | "store")
}
