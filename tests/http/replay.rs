//! Recorded requests of real clients (`tests/fixtures/clients`), sent unchanged: each is served, and charged once and exactly.
//!
//! In a recording `<text:N>` stands for N characters that were removed.

use std::fs;
use std::path::{Path, PathBuf};

use farebox_protocol::{Family, ReportedUsage};
use serde_json::Value;

use crate::support::upstream::{Script, ScriptedUpstream, Seen, Speech};
use crate::support::{Answer, CATALOG, Gateway, path, routes};

const USAGE: ReportedUsage = ReportedUsage {
    input: 1_000,
    cache_read: 200,
    cache_write: 30,
    cache_write_1h: 0,
    cache_write_12h: 0,
    output: 5,
    reasoning: 0,
};
/// (1,000 × 3 + 200 × 0.3 + 30 × 3.75 + 5 × 15) / 1e6 USD.
const COST: &str = "0.0032475";

pub(crate) struct Recording {
    name: String,
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Value,
}

fn folder() -> PathBuf {
    Path::new(crate::support::HOME).join("tests/fixtures/clients")
}

/// The recording with this name.
pub(crate) fn recording(name: &str) -> Recording {
    read(&folder().join(name))
}

fn recordings() -> Vec<Recording> {
    let mut found: Vec<Recording> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| read(&entry.unwrap().path()))
        .collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

fn read(file: &Path) -> Recording {
    let text = expanded(&fs::read_to_string(file).unwrap());
    let recording: Value = serde_json::from_str(&text).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let headers = recording["headers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|header| (text(&header[0]), text(&header[1])));
    Recording {
        name: file.file_name().unwrap().to_string_lossy().into_owned(),
        method: text(&recording["method"]),
        target: text(&recording["target"]),
        headers: headers.collect(),
        body: recording["body"].clone(),
    }
}

/// Puts N characters for every `<text:N>`.
fn expanded(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<text:") {
        let (count, behind) = after.split_once('>').unwrap();
        out += before;
        out.extend(
            "some words of a prompt "
                .chars()
                .cycle()
                .take(count.parse().unwrap()),
        );
        rest = behind;
    }
    out + rest
}

fn family_of(target: &str) -> Family {
    let target = target.split('?').next().unwrap();
    Family::ALL
        .into_iter()
        .find(|family| path(*family) == target)
        .unwrap()
}

fn answering() -> Script {
    Script::by(|seen: &Seen, _| {
        let family = Family::ALL
            .into_iter()
            .find(|family| seen.path.ends_with(family.protocol().path))
            .unwrap();
        let speech = Speech::new(family, "PONG").usage(USAGE);
        if seen.json()["stream"] == true {
            speech.stream()
        } else {
            speech.whole()
        }
    })
}

impl Recording {
    /// Sends it to a gateway with this key, for this model.
    pub(crate) async fn send(
        &self,
        client: &reqwest::Client,
        base: &str,
        secret: &str,
        model: &str,
    ) -> Answer {
        let method = reqwest::Method::from_bytes(self.method.as_bytes()).unwrap();
        let mut request = client.request(method, format!("{base}{}", self.target));
        for (name, value) in &self.headers {
            if !["host", "content-length", "connection", "transfer-encoding"]
                .contains(&name.to_lowercase().as_str())
            {
                request = request.header(name, value.replace("<API_KEY>", secret));
            }
        }
        if self.method == "POST" {
            let mut body = self.body.clone();
            body["model"] = model.into();
            request = request.body(body.to_string());
        }
        Answer::read(request.send().await.unwrap()).await
    }
}

async fn send(gateway: &Gateway, recording: &Recording, secret: &str) -> Answer {
    let (client, base) = (&gateway.client, &gateway.base);
    recording.send(client, base, secret, "test-model").await
}

#[tokio::test]
async fn every_recorded_request_is_served_and_charged_exactly_once() {
    let upstream = ScriptedUpstream::start(answering()).await;
    let catalog = CATALOG.replacen(
        "cache_write = \"3.75\"",
        "cache_write = \"3.75\", cache_write_1h = \"6\"",
        1,
    );
    let gateway = Gateway::start(&catalog, &routes(&upstream.base_url())).await;
    let posts: Vec<Recording> = recordings()
        .into_iter()
        .filter(|recording| recording.method == "POST")
        .collect();
    assert!(posts.len() >= 40, "{}", posts.len());
    for recording in posts {
        let (name, family) = (&recording.name, family_of(&recording.target));
        let key = gateway.key("5.00").await;
        let before = upstream.requests().len();
        let answer = send(&gateway, &recording, &key.secret).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.text);
        let charges = gateway.charges(&key).await;
        assert_eq!(
            (charges.len(), charges[0].amount.to_string()),
            (1, format!("-{COST}")),
            "{name}"
        );
        let seen = upstream.requests();
        assert_eq!(seen.len(), before + 1, "{name}");
        let changed = changes(&recording.body, &seen[before].json());
        let allowed = [
            "model",
            "stream_options",
            "store",
            "max_completion_tokens",
            "max_output_tokens",
            "max_tokens",
            "tools",
        ];
        assert!(
            changed.iter().all(|name| allowed.contains(&name.as_str())),
            "{name}: {changed:?} changed on the way"
        );
        let searches = recording.body["tools"].to_string().contains("\"web_search");
        let removed = answer.header("x-farebox-removed").unwrap_or_default();
        assert_eq!(!removed.is_empty(), searches, "{name}");
        assert!(
            removed
                .split(", ")
                .all(|what| removed.is_empty() || what.starts_with("web_search")),
            "{name}: {removed}"
        );
        assert!(
            searches || !changed.contains(&"tools".to_owned()),
            "{name}: tools changed"
        );
        assert!(!answer.text.contains("upstream-model"), "{name}");
        let shown = if recording.body["stream"] == true {
            "text/event-stream"
        } else {
            "application/json"
        };
        assert_eq!(
            answer.header("content-type"),
            Some(shown),
            "{name}, {family}"
        );
    }
}

/// Top-level fields that differ between what a client sent and what the upstream got.
fn changes(sent: &Value, got: &Value) -> Vec<String> {
    let names = sent
        .as_object()
        .unwrap()
        .keys()
        .chain(got.as_object().unwrap().keys());
    names
        .filter(|name| sent.get(*name) != got.get(*name))
        .cloned()
        .collect()
}

#[tokio::test]
async fn recorded_probes_and_lists_are_answered_for_free() {
    let upstream = ScriptedUpstream::start(answering()).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("0").await;
    for recording in recordings()
        .into_iter()
        .filter(|recording| recording.method != "POST")
    {
        let answer = send(&gateway, &recording, &key.secret).await;
        // A web socket that some clients try first is not there, and they go on with POST.
        let status = if recording.name.contains("websocket") {
            426
        } else {
            200
        };
        assert_eq!(answer.status, status, "{}: {}", recording.name, answer.text);
    }
    assert_eq!(upstream.requests().len(), 0);
}
