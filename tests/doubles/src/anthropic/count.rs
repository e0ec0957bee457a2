//! `POST /v1/messages/count_tokens` of Anthropic: the same prompt, without what only an answer needs.

use std::sync::OnceLock;

use super::blocks::{BLOCKS, MARKS};
use super::messages::{HEADERS, PROMPT, SIZE};
use super::order::ORDER;
use super::tools::TOOLS;
use crate::rule::{Must, WireRule};
use crate::{Vendor, Wire};

use Must::Closed;

pub(crate) static WIRE: Wire = Wire {
    name: "anthropic count_tokens",
    vendor: Vendor::Anthropic,
    path: "/messages/count_tokens",
    rules: &[HEADERS, NAMES, PROMPT, BLOCKS, MARKS, TOOLS, ORDER],
    largest: Some((32 << 20, SIZE)),
    examples: include_str!("count.json"),
    plan: OnceLock::new(),
};

const COUNT: &str = "anthropic 2.12.0 (PyPI, 2026-11-23): types/message_count_tokens_params.py, types/beta/message_count_tokens_params.py";

const NAMES: &[WireRule] = &[WireRule::new(
    "",
    Closed(&[
        "billing_policy",
        "cache_control",
        "compaction",
        "context_management",
        "mcp_servers",
        "messages",
        "model",
        "output_config",
        "output_format",
        "speed",
        "system",
        "thinking",
        "tool_choice",
        "tools",
        "user_profile_id",
        "workspace_id",
    ]),
    COUNT,
)
.unverified()];
