//! Which members of an answer customers see, and where it names the model.
//!
//! What a provider adds to an answer may name its account, its hosts or its price, and tomorrow's names are not known today. Of an
//! *envelope* (the answer, its choices, its usage, an event) only the family's own members pass. Inside messages, deltas, blocks,
//! items, parts and calls new members belong to new abilities: there a member that the family does not have passes, unless its name or
//! its value tells who answered. What is removed is counted, and the provider's `pass_answer` lets it pass.
//!
//! Every model name becomes the public slug. When a name is repeated, some clients read the last and others the first, so a second
//! `model` is removed. What a model or a customer wrote (texts, arguments and inputs of tools, schemas, metadata) is never touched.

use std::borrow::Cow;
use std::ops::Range;

use crate::json::{Cursor, Cuts, JsonError, Kind, MemberName, unescape};

/// Names that tell who answered, and who writes them. Separators and capitals do not matter: `X-Request-Id` is `x_request_id`.
#[rustfmt::skip]
const IDENTIFYING: [(&str, &str); 101] = [
    ("account",                           "AWS: identities and errors"),
    ("account_id",                        "AWS, Cloudflare, Fireworks"),
    ("account_tag",                       "Cloudflare AI Gateway"),
    ("additional_headers",                "LiteLLM: hidden parameters"),
    ("amazon_bedrock_invocation_metrics", "Bedrock: the last event of a stream"),
    ("amazon_bedrock_trace",              "Bedrock with a guardrail"),
    ("anthropic_organization_id",         "Anthropic: response header"),
    ("api_base",                          "LiteLLM: hidden parameters"),
    ("api_key",                           "LiteLLM: settings of a deployment"),
    ("api_key_id",                        "OpenAI: usage exports"),
    ("apim_request_id",                   "Azure: response header"),
    ("arn",                               "AWS"),
    ("availability_zone",                 "AWS"),
    ("backend",                           "Envoy AI Gateway"),
    ("base_url",                          "settings of clients, repeated by proxies"),
    ("billing",                           "OpenAI: who pays, in responses"),
    ("billing_account",                   "Google Cloud"),
    ("cf_aig_log_id",                     "Cloudflare AI Gateway: response header"),
    ("cf_ray",                            "Cloudflare: response header"),
    ("client_request_id",                 "Azure: response header"),
    ("cluster",                           "Envoy"),
    ("cluster_id",                        "Databricks"),
    ("copilot_usage",                     "GitHub Copilot: responses"),
    ("correlation_id",                    "Azure, Mistral: response headers"),
    ("custom_llm_provider",               "LiteLLM: hidden parameters"),
    ("datacenter",                        "Envoy, Consul: the site of a node"),
    ("deployment",                        "Azure, Fireworks"),
    ("deployment_id",                     "Azure, SAP AI Core"),
    ("deployment_name",                   "Azure"),
    ("engine_id",                         "vLLM: transfer of caches"),
    ("gateway_id",                        "Cloudflare AI Gateway"),
    ("generation_id",                     "OpenRouter, Vercel AI Gateway"),
    ("hidden_params",                     "LiteLLM"),
    ("host",                              "proxies with debugging on"),
    ("hostname",                          "proxies with debugging on"),
    ("inference_profile_arn",             "Bedrock"),
    ("instance_id",                       "AWS, Google Cloud"),
    ("invoked_model_id",                  "Bedrock: prompt router"),
    ("key_alias",                         "LiteLLM"),
    ("key_name",                          "LiteLLM"),
    ("kv_transfer_params",                "vLLM: hosts and ports of other servers"),
    ("litellm_call_id",                   "LiteLLM"),
    ("litellm_params",                    "LiteLLM"),
    ("llm_provider",                      "LiteLLM: errors"),
    ("model_arn",                         "Bedrock"),
    ("model_id",                          "LiteLLM: hidden parameters; Bedrock"),
    ("model_name",                        "LangChain: response metadata"),
    ("model_version",                     "Gemini, Vertex AI"),
    ("native_finish_reason",              "OpenRouter"),
    ("node_id",                           "Ray"),
    ("openai_organization",               "OpenAI: response header"),
    ("openai_project",                    "OpenAI: response header"),
    ("org",                               "OpenAI, Groq: errors"),
    ("org_id",                            "OpenAI, Groq"),
    ("organisation",                      "organization, in British spelling"),
    ("organization",                      "OpenAI: lists and errors"),
    ("organization_id",                   "OpenAI, Anthropic"),
    ("owned_by",                          "OpenAI: lists of models"),
    ("pod_name",                          "Kubernetes"),
    ("project",                           "OpenAI, Google Cloud"),
    ("project_id",                        "OpenAI, Google Cloud, watsonx"),
    ("project_number",                    "Google Cloud"),
    ("provider",                          "OpenRouter"),
    ("provider_id",                       "Vercel AI Gateway"),
    ("provider_metadata",                 "Vercel AI SDK"),
    ("provider_name",                     "OpenRouter: document of a generation"),
    ("provider_responses",                "OpenRouter: document of a generation"),
    ("region",                            "AWS, Azure, Google Cloud"),
    ("remote_engine_id",                  "vLLM: transfer of caches"),
    ("remote_host",                       "vLLM: transfer of caches"),
    ("request_id",                        "Anthropic: errors; most vendors' support"),
    ("resource_group",                    "Azure"),
    ("resource_id",                       "Azure"),
    ("response_headers",                  "LiteLLM"),
    ("response_metadata",                 "AWS SDKs"),
    ("routing",                           "Vercel AI Gateway: metadata"),
    ("served_by",                         "proxies of several servers"),
    ("served_model_name",                 "vLLM, Databricks"),
    ("service_account",                   "Google Cloud"),
    ("span_id",                           "OpenTelemetry"),
    ("subscription_id",                   "Azure"),
    ("system_fingerprint",                "OpenAI: the envelope of chat has it, and no other place"),
    ("team_id",                           "xAI, LiteLLM"),
    ("tenant",                            "Azure"),
    ("tenant_id",                         "Azure"),
    ("trace_id",                          "OpenTelemetry"),
    ("traceparent",                       "OpenTelemetry"),
    ("upstream",                          "Envoy, nginx"),
    ("upstream_id",                       "OpenRouter: document of a generation"),
    ("upstream_model",                    "proxies that rename models"),
    ("upstream_provider",                 "proxies that choose providers"),
    ("upstream_request_id",               "proxies"),
    ("upstream_url",                      "proxies"),
    ("user_id",                           "OpenAI: usage exports"),
    ("workspace",                         "Anthropic, Databricks"),
    ("workspace_id",                      "Anthropic, Databricks"),
    ("x_amzn_request_id",                 "AWS: response header"),
    ("x_groq",                            "Groq: chunks"),
    ("x_ms_region",                       "Azure: response header"),
    ("x_request_id",                      "OpenAI: response header"),
    ("zone",                              "Google Cloud"),
];

/// How often JSON inside a string is looked into.
const LAYERS: usize = 3;

/// What stands in a member that the family has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inside {
    /// A text, a count, or what a model or a customer wrote. Nobody looks into it.
    Anything,
    /// The family's own objects, at any depth, if it is no plain value.
    Objects,
}

/// A family's own members of an object; `None`: it has no such member.
pub(crate) type Own = fn(&str) -> Option<Inside>;

/// Collects the members of one object in their order.
pub(crate) struct Members {
    cuts: Cuts,
    model: Option<Range<usize>>,
    named: bool,
    own: Own,
    /// The family's members inside of others.
    content: Own,
    /// Members that tell nothing may be added.
    open: bool,
    strange: bool,
    /// What was found in members that were looked into.
    inner: Option<Box<MemberPlaces>>,
}

/// Positions in an answer or a frame that are changed, collected over all its objects.
#[derive(Debug, Default)]
pub(crate) struct MemberPlaces {
    /// The first model name, and all others.
    pub(crate) models: (Option<Range<usize>>, Vec<Range<usize>>),
    pub(crate) cuts: Vec<Range<usize>>,
    /// Some removed member is not the family's.
    pub(crate) strange: bool,
}

impl Members {
    /// For an envelope with these members, and content of these.
    pub(crate) fn of(own: Own, content: Own) -> Self {
        Self {
            cuts: Cuts::default(),
            model: None,
            named: false,
            own,
            content,
            open: false,
            strange: false,
            inner: None,
        }
    }

    /// For an object inside an envelope.
    pub(crate) fn inside(content: Own) -> Self {
        Self {
            open: true,
            ..Self::of(content, content)
        }
    }

    /// The next member, which the reader knows as one of the family's own: its name is not looked up again.
    pub(crate) fn keep(&mut self, cursor: &Cursor<'_>, key: &MemberName<'_>) {
        self.cuts.take(key.at..cursor.at(), true);
    }

    /// The next member; its value has just been read.
    pub(crate) fn take(&mut self, cursor: &Cursor<'_>, key: &MemberName<'_>) {
        let stays = match key.name.as_ref() {
            "model" => self.take_model(cursor, key),
            name => match (self.own)(name) {
                Some(Inside::Anything) => true,
                Some(Inside::Objects) => self.look_into(cursor, key),
                None => self.stranger(cursor, key),
            },
        };
        self.cuts.take(key.at..cursor.at(), stays);
    }

    /// The next member, which passes only if the provider may add it.
    pub(crate) fn refuse(&mut self, cursor: &Cursor<'_>, key: &MemberName<'_>) {
        let passes = (cursor.additions()).is_some_and(|additions| additions.allows(&key.name));
        self.strange |= !passes;
        self.cuts.take(key.at..cursor.at(), passes);
    }

    /// Whether a member that the family does not have passes all the same.
    #[cold]
    fn stranger(&mut self, cursor: &Cursor<'_>, key: &MemberName<'_>) -> bool {
        let passes = match cursor.additions() {
            None => false,
            Some(additions) if additions.allows(&key.name) => true,
            Some(additions) => {
                let member = cursor.slice(key.at..cursor.at());
                self.open && !identifies(cursor, key) && additions.is_harmless(member)
            }
        };
        self.strange |= !passes;
        passes
    }

    /// Looks into a value of the family's, which stays.
    fn look_into(&mut self, cursor: &Cursor<'_>, key: &MemberName<'_>) -> bool {
        let value = cursor.slice(key.value..cursor.at()).trim_start();
        // Plain, or empty: nothing is inside.
        if value.len() <= 2 || !value.starts_with(['{', '[']) {
            return true;
        }
        let mut places = MemberPlaces::default();
        // Nested too deep to be looked into, it is nothing that the family has.
        let known = objects(&mut cursor.back_to(key.value), self.content, &mut places).is_ok();
        self.strange |= !known;
        if known && !places.is_empty() {
            self.inner.get_or_insert_default().add(places);
        }
        known
    }

    /// A name is replaced, `null` stays, and anything that a client cannot read as a name is removed.
    fn take_model(&mut self, cursor: &Cursor<'_>, key: &MemberName<'_>) -> bool {
        if std::mem::replace(&mut self.named, true) {
            return false;
        }
        let value = cursor.slice(key.value..cursor.at());
        let begin = cursor.at() - value.trim_start().len();
        if value.ends_with('"') {
            self.model = Some(begin..cursor.at());
        }
        value.ends_with('"') || value.ends_with("null")
    }

    /// Whether all members are removed.
    pub(crate) fn nothing_stays(&self) -> bool {
        self.cuts.nothing_stays()
    }

    /// Adds the findings to the positions of the whole.
    pub(crate) fn finish(self, places: &mut MemberPlaces) {
        let cuts = self.cuts.finish();
        if !cuts.is_empty() {
            places.cuts.extend(cuts);
        }
        places.strange |= self.strange;
        places.add_model(self.model);
        if let Some(inner) = self.inner {
            places.add(*inner);
        }
    }
}

/// Reads the family's objects in a value, at any depth.
fn objects(
    cursor: &mut Cursor<'_>,
    content: Own,
    places: &mut MemberPlaces,
) -> Result<(), JsonError> {
    match cursor.peek()? {
        Kind::Array => {
            let mut walk = cursor.enter_array()?;
            while cursor.element(&mut walk)? {
                objects(cursor, content, places)?;
            }
        }
        Kind::Object => {
            let mut members = Members::inside(content);
            let mut walk = cursor.enter_object()?;
            while let Some(key) = cursor.member(&mut walk)? {
                match content(&key.name) {
                    Some(Inside::Objects) => {
                        objects(cursor, content, places)?;
                        members.keep(cursor, &key);
                    }
                    Some(Inside::Anything) => {
                        cursor.skip()?;
                        members.keep(cursor, &key);
                    }
                    None => {
                        cursor.skip()?;
                        members.take(cursor, &key);
                    }
                }
            }
            members.finish(places);
        }
        Kind::String | Kind::Number | Kind::Bool | Kind::Null => {
            cursor.skip()?;
        }
    }
    Ok(())
}

/// Whether a member's name or its value is a name that tells who answered.
fn identifies(cursor: &Cursor<'_>, key: &MemberName<'_>) -> bool {
    let value = cursor.slice(key.value..cursor.at()).trim_start();
    is_identifying(&key.name) || has_identifying(value, LAYERS)
}

/// Whether a name is in the value, as the name of a member or as a whole word, also in JSON that a string holds.
fn has_identifying(value: &str, layers: usize) -> bool {
    strings(value).any(|word| {
        let word = unescape(word);
        let holds_json = word.trim_start().starts_with(['{', '[']);
        // What is too deep to be looked into counts as if it told.
        is_identifying(&word) || holds_json && (layers == 0 || has_identifying(&word, layers - 1))
    })
}

fn is_identifying(name: &str) -> bool {
    IDENTIFYING
        .iter()
        .any(|(known, _)| letters(name).eq(letters(known)))
}

/// The name without separators, in lower case.
fn letters(name: &str) -> impl Iterator<Item = u8> {
    let letters = name.bytes().filter(u8::is_ascii_alphanumeric);
    letters.map(|byte| byte.to_ascii_lowercase())
}

/// What stands between the quotes of a JSON text, escaped as it is.
fn strings(json: &str) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    let pieces = json.split(move |c| {
        let is_quote = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        is_quote
    });
    pieces.skip(1).step_by(2)
}

/// The names of removed members; `cuts` are their places in an answer or a frame. Names that say nothing new are left out.
pub(crate) fn names<'a>(
    text: &'a [u8],
    cuts: &'a [Range<usize>],
) -> impl Iterator<Item = Cow<'a, str>> {
    cuts.iter().filter_map(move |cut| {
        let text = str::from_utf8(text.get(cut.clone())?).ok()?;
        let begin = text.find('"')?;
        let mut cursor = Cursor::new(text.as_bytes()).ok()?.back_to(begin);
        let name = cursor.skip().ok()?;
        cursor.text_of(&name).filter(|name| name != "model")
    })
}

/// The edits to an event that the family does not have. Its texts are scrubbed besides, so only names are looked for.
pub(crate) fn of_unfamiliar(mut cursor: Cursor<'_>) -> Result<MemberPlaces, JsonError> {
    let own: Own = |_| Some(Inside::Anything);
    let (mut members, mut places) = (Members::inside(own), MemberPlaces::default());
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        cursor.skip()?;
        if identifies(&cursor, &key) {
            members.refuse(&cursor, &key);
        } else {
            members.take(&cursor, &key);
        }
    }
    members.finish(&mut places);
    Ok(places)
}

impl MemberPlaces {
    fn is_empty(&self) -> bool {
        let (first, others) = &self.models;
        first.is_none() && others.is_empty() && self.cuts.is_empty() && !self.strange
    }

    fn add_model(&mut self, model: Option<Range<usize>>) {
        match (&self.models.0, model) {
            (None, model) => self.models.0 = model,
            (Some(_), model) => self.models.1.extend(model),
        }
    }

    /// Adds the findings of an object that was read separately.
    pub(crate) fn add(&mut self, other: Self) {
        self.cuts.extend(other.cuts);
        self.strange |= other.strange;
        self.add_model(other.models.0);
        self.models.1.extend(other.models.1);
    }
}
