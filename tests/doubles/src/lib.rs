//! Strict doubles of the vendors: what each real service refuses, as tables with their published sources.
//!
//! A tolerant upstream proves nothing: it answers requests that the real service refuses. So every test's upstream asks [`judge`]
//! before it answers. Pure: no async, no I/O; no program depends on it.
//!
//! - A [`Wire`] is one path of one vendor: a table of [`WireRule`]s and examples of requests that it accepts.
//! - A rule has a place, what must hold there, its source, and whether that source is *verified*. A rule that is not verified
//!   stands in the table and refuses nothing.
//! - [`broken`] makes a request that breaks each rule; `tests/rules.rs` fails when one of them is not refused.
//!
//! To add a rule, add a row to its wire's table; if its place occurs in none of the examples, show it in one. To add a wire, add a
//! file with its table, and its row in [`WIRES`].

mod anthropic;
mod azure;
mod broken;
mod cerebras;
mod chat_order;
mod chat_shapes;
mod compatible;
mod deepseek;
mod embeddings;
mod fireworks;
mod gemini;
mod groq;
mod llama_cpp;
mod lm_studio;
mod mistral;
mod moonshot;
mod oddities;
mod ollama;
mod openai;
mod openrouter;
mod place;
mod plan;
mod qwen;
mod refusal;
mod rule;
pub mod seal;
mod sglang;
mod together;
mod vllm;
mod xai;

pub use broken::{Broken, broken};
pub use oddities::{breaking, oddly, overloaded};
pub use refusal::VendorRefusal;
pub use rule::{JsonType, Must, RuleStanding, WireRule};

use std::sync::OnceLock;

use serde_json::Value;

use plan::RulePlan;

/// A service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Vendor {
    /// OpenAI's own service.
    OpenAi,
    /// Anthropic's own service.
    Anthropic,
    /// OpenAI's models in Azure.
    Azure,
    /// Cerebras.
    Cerebras,
    /// A server that copies a wire and is known to nobody.
    Compatible,
    /// DeepSeek's own service.
    DeepSeek,
    /// Fireworks.
    Fireworks,
    /// Gemini's OpenAI surface.
    Gemini,
    /// Groq.
    Groq,
    /// llama.cpp's own server.
    LlamaCpp,
    /// LM Studio.
    LmStudio,
    /// Mistral's own service.
    Mistral,
    /// Moonshot's own service.
    Moonshot,
    /// Ollama.
    Ollama,
    /// OpenRouter.
    OpenRouter,
    /// Qwen's models in Alibaba Cloud's Model Studio.
    Qwen,
    /// SGLang.
    SgLang,
    /// Together.
    Together,
    /// vLLM.
    Vllm,
    /// xAI's own service.
    XAi,
}

/// One path of one vendor.
#[derive(Debug)]
pub struct Wire {
    /// For people, and the first part of its rules' ids: `openai chat`.
    pub name: &'static str,
    /// Whose it is.
    pub vendor: Vendor,
    /// What its path ends in: `/chat/completions`.
    pub path: &'static str,
    /// Its rules. Vendors that copied a wire share a table.
    pub rules: &'static [&'static [WireRule]],
    /// The most bytes of a body, with the source, if one says it.
    pub largest: Option<(usize, &'static str)>,
    /// A list of requests that it accepts, as JSON: `{"headers": {…}, "body": {…}}`. Together they show every place of its rules.
    pub examples: &'static str,
    /// Its verified rules, read on the first request.
    plan: OnceLock<RulePlan>,
}

/// Every wire.
pub static WIRES: &[&Wire] = &[
    &openai::chat::WIRE,
    &openai::responses::WIRE,
    &openai::responses::COUNT,
    &azure::WIRE,
    &cerebras::WIRE,
    &compatible::CHAT,
    &compatible::MESSAGES,
    &deepseek::WIRE,
    &fireworks::WIRE,
    &gemini::WIRE,
    &groq::WIRE,
    &llama_cpp::WIRE,
    &lm_studio::WIRE,
    &mistral::WIRE,
    &moonshot::WIRE,
    &ollama::WIRE,
    &openrouter::WIRE,
    &qwen::WIRE,
    &sglang::WIRE,
    &together::WIRE,
    &vllm::WIRE,
    &xai::WIRE,
    &embeddings::OPENAI,
    &embeddings::MISTRAL,
    &embeddings::GEMINI,
    &embeddings::VLLM,
    &anthropic::messages::WIRE,
    &anthropic::count::WIRE,
];

/// A request as it arrived.
#[derive(Debug, Clone, Copy)]
pub struct ArrivedRequest<'a> {
    /// With the query, if there is one.
    pub path: &'a str,
    /// In order; the same name may occur twice.
    pub headers: &'a [(String, String)],
    /// The bytes.
    pub body: &'a [u8],
}

/// The wire of a vendor that answers on this path.
#[must_use]
pub fn wire(vendor: Vendor, path: &str) -> Option<&'static Wire> {
    let path = path.split('?').next().unwrap_or_default();
    let ends = |wire: &&&Wire| wire.vendor == vendor && path.ends_with(wire.path);
    // `/messages/count_tokens` also ends in no shorter path, but the longest wins all the same.
    let found = WIRES.iter().filter(ends);
    found.max_by_key(|wire| wire.path.len()).copied()
}

/// The service that defined the wire of this path, which others copied.
#[must_use]
pub fn defined_by(path: &str) -> Vendor {
    if path.contains("/messages") {
        Vendor::Anthropic
    } else {
        Vendor::OpenAi
    }
}

/// Whether this vendor accepts a request.
///
/// # Errors
/// The vendor's own refusal, by the first rule that is broken.
pub fn judge(vendor: Vendor, request: &ArrivedRequest<'_>) -> Result<(), VendorRefusal> {
    first_fault(vendor, request.path, Some(request.headers), request.body)
}

/// The same for a body, whatever its headers.
///
/// # Errors
/// The same.
pub fn judge_body(vendor: Vendor, path: &str, body: &[u8]) -> Result<(), VendorRefusal> {
    first_fault(vendor, path, None, body)
}

fn first_fault(
    vendor: Vendor,
    path: &str,
    headers: Option<&[(String, String)]>,
    body: &[u8],
) -> Result<(), VendorRefusal> {
    let Some(wire) = wire(vendor, path) else {
        let why = format!("no such path: {path}");
        return Err(VendorRefusal::new(vendor, 404, "path", "", why));
    };
    if let Some((most, _)) = wire.largest.filter(|(most, _)| body.len() > *most) {
        let why = format!(
            "the request has {} bytes, at most {most} are taken",
            body.len()
        );
        return Err(VendorRefusal::new(vendor, 413, "size", "", why));
    }
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        let why = "the body is not JSON".to_owned();
        return Err(VendorRefusal::new(vendor, 400, "json", "", why));
    };
    let mut faults = wire.plan().body_faults(&body);
    if let Some(headers) = headers {
        faults.extend(wire.plan().header_faults(headers, &body));
    }
    let first = faults.into_iter().min_by_key(|(number, _)| *number);
    first.map_or(Ok(()), |(_, fault)| {
        let WireRule { status, code, .. } = *fault.rule;
        let id = fault.rule.id(wire);
        let refusal = VendorRefusal::new(vendor, status, &id, &fault.place, fault.why);
        Err(match code {
            Some(code) => refusal.with_code(code),
            None => refusal,
        })
    })
}

/// A broken rule.
#[derive(Debug)]
pub struct BrokenRule<'a> {
    /// Which.
    pub rule: &'a WireRule,
    /// Where in the request.
    pub place: String,
    /// What was expected there.
    pub why: String,
}

impl Wire {
    /// All rules, those that do not refuse included.
    pub fn all_rules(&self) -> impl Iterator<Item = &'static WireRule> {
        self.rules.iter().copied().flatten()
    }

    /// The rules that refuse.
    fn plan(&self) -> &RulePlan {
        let verified = |rule: &&WireRule| rule.standing == RuleStanding::Verified;
        self.plan
            .get_or_init(|| RulePlan::new(self.all_rules().filter(verified)))
    }

    /// What is wrong with a request, in the order of the table.
    #[must_use]
    pub fn faults(&self, headers: &[(String, String)], body: &Value) -> Vec<BrokenRule<'static>> {
        self.plan().faults(headers, body)
    }

    /// Requests that it accepts.
    #[must_use]
    pub fn examples(&self) -> Vec<(Vec<(String, String)>, Value)> {
        let list: Value = serde_json::from_str(self.examples).unwrap_or_default();
        let examples = list.as_array().cloned().unwrap_or_default();
        let first = examples.first().cloned().unwrap_or_default();
        let read = |example: Value| {
            // Most examples differ only in their bodies.
            let headers = example.get("headers").unwrap_or(&first["headers"]);
            let headers = headers.as_object().into_iter().flatten();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let headers = headers.map(|(name, value)| (name.clone(), text(value)));
            (headers.collect(), example["body"].clone())
        };
        examples.into_iter().map(read).collect()
    }
}
