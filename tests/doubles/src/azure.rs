//! Azure's `POST /openai/v1/chat/completions`: OpenAI's wire, a key in a header of its own or as a bearer, and filters in the answer.

use std::sync::OnceLock;

use crate::openai::chat::{FIELDS, MODELS, ORDER};
use crate::openai::messages::{MESSAGES, PARTS};
use crate::openai::tools::{FORMATS, TOOLS};
use crate::rule::{Must, WireRule};
use crate::{Vendor, Wire};

use Must::{Absent, Once, Start};

pub(crate) static WIRE: Wire = Wire {
    name: "azure chat",
    vendor: Vendor::Azure,
    path: "/chat/completions",
    rules: &[
        HEADERS, FIELDS, MESSAGES, PARTS, TOOLS, FORMATS, ORDER, MODELS,
    ],
    largest: None,
    examples: include_str!("openai/chat.json"),
    plan: OnceLock::new(),
};

const PAGE: &str = "OpenAI's own client, which sends its key as a bearer, against Azure's v1 paths: github.com/strands-agents/harness-sdk/pull/3576, 2026; v1 takes that client: learn.microsoft.com/en-us/azure/foundry/openai/api-version-lifecycle, read 2026-11-23";

/// Configured with its key as a bearer, which its v1 paths take.
const HEADERS: &[WireRule] = &[
    WireRule::new("@content-type", Once, PAGE),
    WireRule::new("@content-type", Start("application/json"), PAGE),
    WireRule::new("@authorization", Once, PAGE).status(401),
    WireRule::new("@authorization", Start("Bearer "), PAGE).status(401),
    WireRule::new("@api-key", Absent, PAGE)
        .broken_by(&[("@api-key", "k")])
        .named("beside a bearer")
        .unverified(),
];
