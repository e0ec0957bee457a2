//! The admin listener's answers: the document of `/status` and the events of `/live`.
//!
//! Every field is optional: a gateway of another version shows less, and never breaks the console. `docs/reference.md` lists the
//! shapes.

use farebox_ledger::PlanTerms;
use serde::Deserialize;

/// The content of `/status`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StatusReport {
    pub(crate) version: String,
    pub(crate) started_at: String,
    pub(crate) public_url: String,
    /// Ids and paths are left out: the gateway's token was not sent.
    pub(crate) shortened: bool,
    pub(crate) generation: u64,
    pub(crate) loaded_at: String,
    pub(crate) catalog_hash: String,
    pub(crate) routes_hash: String,
    /// `ok` or `rejected`.
    pub(crate) state: String,
    pub(crate) rejected_at: Option<String>,
    pub(crate) diagnostics: Vec<ReportedDiagnostic>,
    /// What the last reload changed.
    pub(crate) last_changes: Vec<ReportedChange>,
    pub(crate) providers: Vec<ReportedProvider>,
    pub(crate) routes: Vec<ReportedRoute>,
    pub(crate) targets: Vec<ReportedTarget>,
    pub(crate) alerts: Vec<ReportedAlert>,
    /// The gateways that share the ledger.
    pub(crate) nodes: Vec<ReportedNode>,
    pub(crate) servers: Vec<ReportedServer>,
    pub(crate) models: Vec<ReportedModel>,
    pub(crate) retired: Vec<ReportedRetired>,
    /// Plans that are sold.
    pub(crate) plans: Vec<PlanTerms>,
    /// The names of its price lists.
    pub(crate) lists: Vec<String>,
    /// Fields of requests that are not served.
    pub(crate) client_fields: Vec<ClientField>,
    pub(crate) ledger: LedgerState,
}

/// A field that clients send and that is taken out or refused.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ClientField {
    pub(crate) family: String,
    pub(crate) field: String,
    /// `refused` or `taken_out`.
    pub(crate) fate: String,
    pub(crate) requests: u64,
}

/// A gateway that shares the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedNode {
    pub(crate) epoch: i64,
    pub(crate) name: String,
    pub(crate) version: String,
    /// Hashes of its catalog and routes.
    pub(crate) configuration: String,
    pub(crate) started_at: String,
    pub(crate) silent_ms: i64,
    pub(crate) per_second: u64,
    pub(crate) holds: u64,
}

/// A server of the ledger's database.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedServer {
    pub(crate) place: String,
    /// Its `cluster_name`.
    pub(crate) name: String,
    pub(crate) used: bool,
    /// It takes writes although another one is used.
    pub(crate) stale: bool,
    pub(crate) state: String,
}

/// A problem for the operator, with its remedy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedAlert {
    pub(crate) kind: String,
    /// `page`, `warn` or `info`.
    pub(crate) severity: String,
    /// What it is about; empty for the gateway itself.
    pub(crate) subject: String,
    pub(crate) since: String,
    /// What such an alert means.
    pub(crate) means: String,
    /// Why, in full.
    pub(crate) reason: String,
    /// What customers see of it.
    pub(crate) customers: String,
    pub(crate) remedy: String,
    /// The key concerned, if any.
    pub(crate) key: String,
    /// The target concerned: `provider/model`.
    pub(crate) target: String,
    /// The slug concerned.
    pub(crate) slug: String,
    /// Subject, reason and remedy on one line.
    pub(crate) text: String,
}

impl ReportedAlert {
    /// Whether it concerns the key or target of this name.
    pub(crate) fn is_about(&self, name: &str) -> bool {
        !name.is_empty() && (self.key == name || self.target == name)
    }
}

/// One finding of the checker.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedDiagnostic {
    /// `error`, `warning` or `note`.
    pub(crate) severity: String,
    pub(crate) code: String,
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// The whole report with its caret, as plain text.
    pub(crate) rendered: String,
}

/// One difference between the files and what runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedChange {
    /// `added`, `changed` or `removed`.
    pub(crate) kind: String,
    pub(crate) slug: String,
    pub(crate) what: String,
    pub(crate) old: Option<String>,
    pub(crate) new: Option<String>,
}

/// A provider as it runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedProvider {
    pub(crate) name: String,
    pub(crate) simulated: bool,
    pub(crate) speaks: Vec<String>,
    pub(crate) in_flight: u64,
    pub(crate) max_concurrent: Option<u64>,
    /// By its number.
    pub(crate) accounts: Vec<ReportedAccount>,
}

/// What an account of a provider has done since the gateway started.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedAccount {
    pub(crate) requests: u64,
    /// Tokens of prompts, and those of them that it had cached.
    pub(crate) input: u64,
    pub(crate) cached: u64,
    /// Conversations that left it, because it could not take them.
    pub(crate) spills: u64,
}

/// A route's policy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedRoute {
    pub(crate) slug: String,
    pub(crate) on_disconnect: String,
}

/// A target, in the order in which its route tries them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedTarget {
    pub(crate) slug: String,
    /// The upstream's model name.
    pub(crate) target: String,
    pub(crate) provider: String,
    /// `closed`, `open` or `half_open`.
    pub(crate) state: String,
    /// The kind of the alert that tells of it.
    pub(crate) alert: Option<String>,
    pub(crate) failures: u64,
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    pub(crate) reason: Option<String>,
    pub(crate) in_flight: u64,
    /// What its answers have taught, by the class that served them; that of most is one.
    pub(crate) taught: Vec<ReportedLesson>,
    pub(crate) excess: Option<ReportedExcess>,
}

/// What answers of one class have taught about a target.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedLesson {
    pub(crate) class: String,
    /// In thousandths of a token a second.
    pub(crate) pace: u64,
    /// Tokens that the pace is from.
    pub(crate) own_tokens: u64,
    /// What it counts for a prompt, in thousandths of what we count.
    pub(crate) ratio: u64,
    /// Tokens that this is from.
    pub(crate) own_prompts: u64,
    pub(crate) hides: bool,
    pub(crate) caches: bool,
}

/// By how much a target's counts have exceeded what was held for them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedExcess {
    pub(crate) tokens: u64,
    pub(crate) customers: u64,
}

/// One published model: the canonical columns, prices as exact decimal text in USD per million tokens.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedModel {
    pub(crate) slug: String,
    pub(crate) model: String,
    pub(crate) provider: String,
    pub(crate) best_path: String,
    pub(crate) best_environments: Vec<String>,
    pub(crate) price: ReportedPrice,
    pub(crate) capabilities: Vec<String>,
    pub(crate) context: u64,
    pub(crate) max_output: u64,
    pub(crate) aliases: Vec<String>,
}

impl ReportedModel {
    /// The path that suits it best, as customers know it.
    pub(crate) fn path(&self) -> &str {
        match self.best_path.as_str() {
            "messages" => "native",
            family => family,
        }
    }
}

/// The prices of a model below every tier.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedPrice {
    pub(crate) input: String,
    pub(crate) output: String,
    pub(crate) cache_read: String,
    pub(crate) cache_write: String,
    pub(crate) cache_write_1h: Option<String>,
    pub(crate) reasoning: Option<String>,
    pub(crate) per_image: Option<String>,
    pub(crate) per_request: Option<String>,
}

/// A slug that is no longer sold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedRetired {
    pub(crate) slug: String,
    pub(crate) since: String,
    #[serde(rename = "use")]
    pub(crate) replacement: Option<String>,
}

/// The state of the gateway's ledger writer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LedgerState {
    pub(crate) queue: u64,
    pub(crate) commit_p99_us: Option<u64>,
}

/// What the gateway knows of one request: the content of `/requests/{id}` without the journal's entry.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct OneRequest {
    pub(crate) request_id: String,
    /// As it ended, if it is remembered.
    pub(crate) record: Option<LiveEvent>,
    /// Where it is now, if it runs.
    pub(crate) under_way: Option<ReportedUnderWay>,
}

/// A request that runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedUnderWay {
    /// Failed attempts so far.
    pub(crate) attempts: Vec<String>,
    /// The target that has it now: `provider/model`.
    pub(crate) target: String,
    /// When it was sent there.
    pub(crate) since: String,
    /// Whether the answer has begun.
    pub(crate) answers: bool,
}

/// One finished request on `/live`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LiveEvent {
    pub(crate) request_id: String,
    pub(crate) at: String,
    pub(crate) key: Option<String>,
    pub(crate) slug: String,
    /// The model that was asked for, as the customer wrote it.
    pub(crate) asked: String,
    pub(crate) family: String,
    /// `provider/model`; empty if none was reached.
    pub(crate) target: String,
    pub(crate) status: u16,
    pub(crate) end_reason: String,
    pub(crate) usage: LiveUsage,
    /// Exact decimal text in USD, like `hold` and `loss`.
    pub(crate) charge: Option<String>,
    pub(crate) hold: Option<String>,
    pub(crate) loss: Option<String>,
    pub(crate) first_byte_ms: Option<u64>,
    pub(crate) total_ms: u64,
    /// What the customer was told instead of an answer.
    pub(crate) code: String,
    /// The field that it names.
    pub(crate) field: String,
    /// Its text; only on a request's own page.
    pub(crate) message: String,
    /// Failed attempts, in words.
    pub(crate) attempts: Vec<String>,
    /// The answer's own id.
    pub(crate) answer_id: String,
    /// What was taken out of the request.
    pub(crate) removed: String,
    /// What its translation lost.
    pub(crate) lost: String,
}

/// Token counts of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LiveUsage {
    pub(crate) input: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
    pub(crate) output: u64,
    pub(crate) reasoning: u64,
}

impl LiveUsage {
    /// Tokens in, from and to a cache as well, and tokens out.
    pub(crate) fn in_and_out(&self) -> (u64, u64) {
        let written = self.cache_read.saturating_add(self.cache_write);
        let output = self.output.saturating_add(self.reasoning);
        (self.input.saturating_add(written), output)
    }
}
