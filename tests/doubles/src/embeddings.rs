//! `POST /v1/embeddings` at the services that have it: OpenAI's own, and three that copied it.

use std::sync::OnceLock;

use serde_json::Value;

use crate::chat_shapes::{headers, open_headers};
use crate::rule::{JsonType, Must, WireRule};
use crate::{Vendor, Wire};

use JsonType::{Integer, List, Null, Text};
use Must::{Be, Between, Closed, Hold, Needs, OneOf};

pub(crate) static OPENAI: Wire = Wire {
    name: "openai embeddings",
    vendor: Vendor::OpenAi,
    path: PATH,
    rules: &[&headers(OPENAI_SDK), OPENAI_RULES],
    largest: None,
    examples: EXAMPLES,
    plan: OnceLock::new(),
};

pub(crate) static MISTRAL: Wire = Wire {
    name: "mistral embeddings",
    vendor: Vendor::Mistral,
    path: PATH,
    rules: &[&headers(MISTRAL_SDK), MISTRAL_RULES],
    largest: None,
    examples: MISTRAL_EXAMPLES,
    plan: OnceLock::new(),
};

pub(crate) static GEMINI: Wire = Wire {
    name: "gemini embeddings",
    vendor: Vendor::Gemini,
    path: PATH,
    rules: &[&headers(GEMINI_PAGE), GEMINI_RULES],
    largest: None,
    examples: EXAMPLES,
    plan: OnceLock::new(),
};

pub(crate) static VLLM: Wire = Wire {
    name: "vllm embeddings",
    vendor: Vendor::Vllm,
    path: PATH,
    rules: &[&open_headers(VLLM_CODE), VLLM_RULES],
    largest: None,
    examples: EXAMPLES,
    plan: OnceLock::new(),
};

const PATH: &str = "/embeddings";
const OPENAI_SDK: &str = "openai 3.54.0 (PyPI, 2026-11-23): types/embedding_create_params.py";
const MISTRAL_SDK: &str =
    "mistralai 3.7.0 (PyPI, 2026-11-23): client/models/embeddingrequest.py and what it names";
const GEMINI_PAGE: &str =
    "ai.google.dev/gemini-api/docs/openai, read 2026-11-23: a bearer and a JSON body";
const NONE: &str = "no source found (2026-11-30) for what this surface asks of it";
const VLLM_CODE: &str =
    "github.com/vllm-project/vllm at 02181488: entrypoints/openai/serving_embedding.py";

/// The larger of the vocabularies of OpenAI's models of vectors: cl100k.
const VOCABULARY: u64 = 100_277;

const EXAMPLES: &str = r#"[
  {"headers": {"content-type": "application/json", "authorization": "Bearer key"},
   "body": {"model": "text-embedding-3-small", "input": "a", "dimensions": 256, "encoding_format": "float", "user": "u"}},
  {"body": {"model": "text-embedding-3-small", "input": ["a", "b"], "encoding_format": "base64"}},
  {"body": {"model": "text-embedding-3-small", "input": [1, 2, 3]}},
  {"body": {"model": "text-embedding-3-small", "input": [[1, 2], [3]]}}
]"#;

const MISTRAL_EXAMPLES: &str = r#"[
  {"headers": {"content-type": "application/json", "authorization": "Bearer key"},
   "body": {"model": "mistral-embed", "input": "a", "output_dimension": 256, "output_dtype": "float", "encoding_format": "float"}},
  {"body": {"model": "mistral-embed", "input": ["a", "b"]}}
]"#;

const OPENAI_RULES: &[WireRule] = &[
    WireRule::new("", Needs(&["input"]), OPENAI_SDK),
    WireRule::new("", Needs(&["model"]), OPENAI_SDK).named("needs its model"),
    WireRule::new(
        "",
        Closed(&["input", "model", "dimensions", "encoding_format", "user"]),
        OPENAI_SDK,
    ),
    WireRule::new("/input", Be(&[Text, List]), OPENAI_SDK),
    WireRule::new("/input", Hold(has_texts), OPENAI_SDK)
        .named("an empty text")
        .broken_by(&[("/input", r#"["a",""]"#)]),
    WireRule::new("/input", Hold(is_no_larger), OPENAI_SDK)
        .named("no more than 2,048")
        .broken_by(&[("/input", TOO_MANY)]),
    WireRule::new("/input", Hold(has_known_tokens), OPENAI_SDK)
        .named("a token above the vocabulary")
        .broken_by(&[("/input", "[100277]")]),
    WireRule::new("/dimensions", Be(&[Integer]), OPENAI_SDK),
    WireRule::new("/dimensions", Between(1.0, 3_072.0), OPENAI_SDK),
    WireRule::new("/encoding_format", OneOf(&["float", "base64"]), OPENAI_SDK),
    WireRule::new("/user", Be(&[Text]), OPENAI_SDK),
];

const MISTRAL_RULES: &[WireRule] = &[
    WireRule::new("", Needs(&["input"]), MISTRAL_SDK).status(422),
    WireRule::new("", Needs(&["model"]), MISTRAL_SDK)
        .named("needs its model")
        .status(422),
    WireRule::new(
        "",
        Closed(&[
            "model",
            "input",
            "metadata",
            "output_dimension",
            "output_dtype",
            "encoding_format",
        ]),
        MISTRAL_SDK,
    )
    .status(422),
    WireRule::new("/input", Be(&[Text, List]), MISTRAL_SDK).status(422),
    WireRule::new("/input/*", Be(&[Text]), MISTRAL_SDK).status(422),
    WireRule::new("/output_dimension", Be(&[Integer, Null]), MISTRAL_SDK).status(422),
    WireRule::new("/encoding_format", OneOf(&["float", "base64"]), MISTRAL_SDK).status(422),
];

const GEMINI_RULES: &[WireRule] = &[
    WireRule::new("", Needs(&["input"]), NONE).unverified(),
    WireRule::new("", Needs(&["model"]), NONE)
        .unverified()
        .named("needs its model"),
];

const VLLM_RULES: &[WireRule] = &[
    WireRule::new("", Needs(&["input"]), VLLM_CODE),
    WireRule::new("/input", Be(&[Text, List]), VLLM_CODE),
    WireRule::new("/dimensions", Be(&[Integer, Null]), VLLM_CODE),
    WireRule::new("/encoding_format", OneOf(&["float", "base64"]), VLLM_CODE),
];

/// A list of 2,049 tokens.
const TOO_MANY: &str = {
    const TEXT: [u8; 2 * 2_049 + 1] = {
        let mut text = [b'1'; 2 * 2_049 + 1];
        let mut at = 0;
        while at < text.len() {
            text[at] = b',';
            at += 2;
        }
        text[0] = b'[';
        text[2 * 2_049] = b']';
        text
    };
    match str::from_utf8(&TEXT) {
        Ok(text) => text,
        Err(_) => "",
    }
};

fn has_texts(input: &Value) -> Result<(), String> {
    let is_empty = |value: &Value| match value {
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    let mut inner = input.as_array().into_iter().flatten();
    if is_empty(input) || inner.any(is_empty) {
        return Err("cannot be an empty string".to_owned());
    }
    Ok(())
}

fn is_no_larger(input: &Value) -> Result<(), String> {
    if input.as_array().is_some_and(|list| list.len() > 2_048) {
        return Err("must be 2048 items or less".to_owned());
    }
    Ok(())
}

fn has_known_tokens(input: &Value) -> Result<(), String> {
    let lists = input.as_array().into_iter().flatten();
    let mut tokens = lists.flat_map(|value| match value {
        Value::Array(list) => list.as_slice(),
        one => std::slice::from_ref(one),
    });
    match tokens.find(|token| token.as_u64().is_some_and(|token| token >= VOCABULARY)) {
        Some(token) => Err(format!(
            "has the token {token}, which the model does not know"
        )),
        None => Ok(()),
    }
}
