//! `farebox check --online`: what a first customer would have met is found before, each with its remedy, at a price that is said first.

use std::process::{Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use farebox_protocol::{Family, ReportedUsage};
use serde_json::{Value, json};

use crate::support::process::farebox;
use crate::support::upstream::{Reply, Script, ScriptedUpstream, Seen, Speech};
use crate::support::{CATALOG, routes_speaking};

/// Checks these routes: exit code, findings, and what was said besides.
fn checked(routes: &str, more: &[&str]) -> (i32, Vec<Value>, String) {
    checked_with(CATALOG, routes, more)
}

fn checked_with(catalog: &str, routes: &str, more: &[&str]) -> (i32, Vec<Value>, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("catalog.toml"), catalog).unwrap();
    std::fs::write(folder.path().join("routes.toml"), routes).unwrap();
    // Another gateway's findings are none of these.
    let nobody = ["--admin-listen", "127.0.0.1:1", "--json"];
    let arguments = [&["check"][..], more, &nobody].concat();
    let output: Output = farebox(folder.path(), &arguments)
        .env("UPSTREAM_KEY", "a-secret-word")
        .env("QUOTED_KEY", "'a-secret-word'")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!said.contains("a-secret-word"), "{said}");
    let findings = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stdout)));
    (output.status.code().unwrap(), findings, said)
}

fn online(routes: &str) -> (i32, Vec<Value>, String) {
    checked(routes, &["--online"])
}

fn pong() -> Reply {
    Speech::new(Family::Chat, "PONG").whole()
}

/// An upstream with this list of models, and routes to it.
async fn upstream(
    models: &[&str],
    answer: impl Fn(&Seen) -> Reply + Send + 'static,
) -> (ScriptedUpstream, String) {
    let upstream = ScriptedUpstream::start(Script::by(move |seen, _| answer(seen))).await;
    upstream.list(200, models);
    let routes = routes_speaking(&upstream.base_url(), Family::Chat);
    (upstream, routes)
}

#[track_caller]
fn has(findings: &[Value], code: &str, message: &str, help: &str) {
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    let is_it = |finding: &&Value| {
        text(finding, "code") == code
            && text(finding, "message").contains(message)
            && text(finding, "help").contains(help)
    };
    assert!(
        findings.iter().any(|finding| is_it(&finding)),
        "{code} {message:?} {help:?} is not in {findings:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_works_is_asked_once_for_a_price_that_is_said_first() {
    let (upstream, routes) = upstream(&["upstream-model-1"], |_| pong()).await;
    let (code, findings, said) = online(&routes);
    assert_eq!((code, findings.as_slice()), (0, &[][..]), "{said}");
    assert!(
        said.contains("2 smallest requests") && said.contains("at most 0.0") && !said.contains('?'),
        "nothing is asked of a script: {said}"
    );
    let asked: Vec<Value> = upstream.requests().iter().map(Seen::json).collect();
    assert_eq!(asked.len(), 2, "one for each target: {asked:?}");
    assert_eq!(asked[0]["tools"].as_array().unwrap().len(), 1, "{asked:?}");
    assert!(asked[0].to_string().contains("image_url"), "{asked:?}");
    assert!(
        asked[1]["tools"].is_null(),
        "it is sold without tools: {asked:?}"
    );
    let (code, _, said) = checked(&routes, &[]);
    assert_eq!(
        (code, upstream.requests().len()),
        (0, 2),
        "only --online asks: {said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_asked_on_its_own_path() {
    let (upstream, _) = upstream(&["upstream-embeddings", "upstream-rerank"], |seen| {
        if seen.path.ends_with("/rerank") {
            return Reply::error(404, "invalid_request_error", None, "Not Found");
        }
        let data = json!([{ "index": 0, "embedding": [0.5] }]);
        Reply::json(
            200,
            &json!({ "data": data, "usage": { "prompt_tokens": 1, "total_tokens": 1 } }),
        )
    })
    .await;
    let model = |call: &str| {
        format!(
            r#"
[[model]]
model             = "For {call}"
slug              = "{call}-1"
provider          = "Tests"
best_path         = "{call}"
best_environments = ["tests"]
price             = {{ input = "0.02" }}
capabilities      = ["{call}"]
limits            = {{ context = 8_192 }}
"#
        )
    };
    let route = |call: &str| {
        format!(
            "\n[[route]]\nslug = \"{call}-1\"\ntargets = [ {{ provider = \"up\", model = \"upstream-{call}\" }} ]\n"
        )
    };
    let routes = format!(
        "[provider.up]\nbase_url = \"{}\"\nspeaks = [\"embeddings\", \"rerank\"]\nkey = {{ env = \"UPSTREAM_KEY\" }}\n{}{}",
        upstream.base_url(),
        route("embeddings"),
        route("rerank")
    );
    let catalog = [model("embeddings"), model("rerank")].concat();
    let (code, findings, said) = checked_with(&catalog, &routes, &["--online"]);
    assert_eq!(code, 78, "{said}");
    has(&findings, "E602", "knows no such path: 404", "");
    assert_eq!(upstream.requests().len(), 2, "{findings:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_one_organisation_are_named_by_their_numbers() {
    // Every answer of this upstream names the same organisation.
    let (_upstream, routes) = upstream(&["upstream-model-1"], |_| pong()).await;
    let one = r#"key      = { env = "UPSTREAM_KEY" }"#;
    let two = r#"keys = [ { env = "UPSTREAM_KEY" }, { env = "UPSTREAM_KEY" } ]"#;
    let (code, findings, said) = online(&routes.replacen(one, two, 1));
    assert_eq!(code, 0, "{said}");
    has(
        &findings,
        "N505",
        "the keys of provider `up` are of one organisation, so they share a prompt cache",
        "keys_by = \"request\"",
    );
    assert!(
        !format!("{findings:?}{said}").contains("org-upstream"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_mistake_is_found_with_its_remedy() {
    type Mistake = (fn(&Seen) -> Reply, &'static str, &'static str, &'static str);
    let mistakes: [Mistake; 6] = [
        (
            |_| Reply::error(404, "invalid_request_error", None, "Not Found"),
            "E602",
            "knows no such path: 404",
            "most end in `/v1`",
        ),
        (
            |_| {
                Reply::error(
                    404,
                    "invalid_request_error",
                    Some("model_not_found"),
                    "The model does not exist",
                )
            },
            "E603",
            "`up/upstream-model-1` is no model that this account may use",
            "its list of models has upstream-model-one",
        ),
        (
            |_| {
                Reply::error(
                    401,
                    "invalid_request_error",
                    Some("invalid_api_key"),
                    "Incorrect API key provided",
                )
            },
            "E604",
            "refuses the key: 401",
            "replace the secret that `[provider.up]` names",
        ),
        (
            |_| {
                Reply::error(
                    429,
                    "insufficient_quota",
                    None,
                    "You exceeded your current quota",
                )
            },
            "E605",
            "no money or quota left: 429",
            "pay the provider",
        ),
        (
            |seen| match seen.json()["tools"].is_null() {
                true => pong(),
                false => Reply::error(
                    400,
                    "invalid_request_error",
                    None,
                    "tools are not supported",
                ),
            },
            "E606",
            "`up/upstream-model-1` refuses tools, which `test-model` is sold with: 400",
            "take \"tools\" out of its `capabilities`",
        ),
        (
            |_| Reply::error(500, "server_error", None, "worn out"),
            "E607",
            "does not answer properly: 500",
            "read the provider's words",
        ),
    ];
    for (answer, code, message, help) in mistakes {
        let models = match code {
            "E603" => &["upstream-model-one", "another"][..],
            _ => &["upstream-model-1", "upstream-model-2"],
        };
        let (_upstream, routes) = upstream(models, answer).await;
        let (exit, findings, _) = online(&routes);
        assert_eq!(exit, 78, "as the other findings of check: {findings:?}");
        has(&findings, code, message, help);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_there_no_capacity_and_a_key_in_quotes() {
    let (gone, routes) = upstream(&[], |_| pong()).await;
    drop(gone);
    let (exit, findings, _) = online(&routes);
    assert_eq!(
        (exit, findings.len()),
        (78, 1),
        "once for a provider: {findings:?}"
    );
    has(
        &findings,
        "E601",
        "provider `up` cannot be reached",
        "`base_url`",
    );

    let busy = |_: &Seen| Reply::error(429, "rate_limit_error", None, "slow down");
    let (_upstream, routes) = upstream(&[], busy).await;
    let (exit, findings, _) = online(&routes);
    assert_eq!(
        exit, 0,
        "nothing is known, so nothing is wrong: {findings:?}"
    );
    has(&findings, "W415", "has no capacity now", "again");

    let (upstream, routes) = upstream(&[], |_| pong()).await;
    let routes = routes.replace("UPSTREAM_KEY", "QUOTED_KEY");
    let (exit, findings, said) = online(&routes);
    assert_eq!((exit, upstream.requests().len()), (78, 0), "{said}");
    has(&findings, "E310", "stands in quotes", "");
}

/// The test model reasons.
fn reasoning() -> String {
    CATALOG.replacen("\"streaming\"]", "\"streaming\", \"reasoning\"]", 1)
}

/// An answer that reasoned for so many tokens and ended at its limit.
fn thought(tokens: u64) -> Reply {
    let usage = ReportedUsage {
        input: 20,
        reasoning: tokens,
        ..ReportedUsage::default()
    };
    let speech = Speech::new(Family::Chat, "").usage(usage).stop("length");
    speech.whole()
}

/// Whether it is the trial of the limit.
fn tries_the_limit(seen: &Seen) -> bool {
    seen.json().to_string().contains("prime numbers")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_is_tried_with_reasoning_on_and_sixteen_tokens() {
    for (counted, code) in [(16, None), (480, Some("W427"))] {
        let answer = move |seen: &Seen| match tries_the_limit(seen) {
            true => thought(counted),
            false => pong(),
        };
        let (upstream, routes) = upstream(&["upstream-model-1"], answer).await;
        let effort = "model = \"upstream-model-1\", abilities = { thinking = \"effort\" }";
        let routes = routes.replacen("model = \"upstream-model-1\"", effort, 1);
        let (exit, findings, said) = checked_with(&reasoning(), &routes, &["--online"]);
        assert_eq!(exit, 0, "{said}");
        assert!(said.contains("and 1 trial of limits"), "{said}");
        let asked: Vec<Value> = upstream.requests().iter().map(Seen::json).collect();
        let tried = asked
            .iter()
            .find(|body| !body["reasoning_effort"].is_null());
        let tried = tried.unwrap_or_else(|| panic!("{asked:#?}"));
        assert!(tried.to_string().contains(":16"), "{tried}");
        match code {
            None => assert_eq!(findings, [] as [Value; 0], "as it is said of own servers"),
            Some(code) => has(
                &findings,
                code,
                "reasons beyond an output limit: it counted 480 tokens",
                "write limit = \"text\" in [provider.up]",
            ),
        }
    }
}

/// Routes to a hosted service of this `kind`, which answers here.
fn hosted(kind: &str, base_url: &str) -> String {
    let targets = |slug: &str, model: &str| {
        format!(
            "[[route]]\nslug = \"{slug}\"\ntargets = [ {{ provider = \"up\", model = \"{model}\" }} ]\n"
        )
    };
    format!(
        "[provider.up]\nkind = \"{kind}\"\nbase_url = \"{base_url}\"\nkey = {{ env = \"UPSTREAM_KEY\" }}\n\n{}{}",
        targets("test-model", "upstream-model-1"),
        targets("test-blind", "upstream-model-2")
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_says_of_a_hosted_service_is_tried_and_told() {
    // Billed for the stream that was closed: next to nothing, or all 512 tokens of it.
    for (billed, code, message, help) in [
        (
            0.0002,
            "W427",
            "stops when its stream is closed",
            "stops = true",
        ),
        (0.0077, "", "", ""),
    ] {
        let closed = Arc::new(AtomicBool::new(false));
        let answer = move |seen: &Seen| {
            if seen.method == "GET" {
                let used = if closed.load(Relaxed) {
                    7.5 + billed
                } else {
                    7.5
                };
                return Reply::json(200, &json!({ "data": { "usage": used } }));
            }
            if seen.json()["stream"] == true {
                closed.store(true, Relaxed);
                return Speech::new(Family::Chat, "one two three")
                    .stream()
                    .stall_after(3);
            }
            match tries_the_limit(seen) {
                true => thought(16),
                false => pong(),
            }
        };
        let upstream = ScriptedUpstream::tolerant(Script::by(move |seen, _| answer(seen))).await;
        upstream.list(200, &["upstream-model-1", "upstream-model-2"]);
        let routes = hosted("openrouter", &upstream.base_url());
        let (exit, findings, said) = checked_with(&reasoning(), &routes, &["--online"]);
        assert_eq!(exit, 0, "{findings:?} {said}");
        has(
            &findings,
            "N507",
            "nobody says whether reasoning at `up`",
            "check --online",
        );
        has(
            &findings,
            "N508",
            "keeps reasoning within an output limit",
            "write limit = \"all\" in [provider.up]",
        );
        match code {
            "" => assert!(
                !format!("{findings:?}").contains("W427"),
                "as the library says: {findings:?}"
            ),
            code => has(&findings, code, message, help),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_does_not_say_what_was_used_is_not_judged() {
    let answer = |seen: &Seen| match seen.method.as_str() {
        "GET" => Reply::error(404, "invalid_request_error", None, "no such page"),
        _ if tries_the_limit(seen) => thought(16),
        _ => pong(),
    };
    let upstream = ScriptedUpstream::tolerant(Script::by(move |seen, _| answer(seen))).await;
    upstream.list(200, &["upstream-model-1", "upstream-model-2"]);
    let routes = hosted("moonshot", &upstream.base_url());
    let (exit, findings, said) = checked_with(&reasoning(), &routes, &["--online"]);
    assert_eq!(exit, 0, "{findings:?} {said}");
    has(
        &findings,
        "N508",
        "does not show whether it stops when its stream is closed: this key may not read",
        "stops = true or stops = false",
    );
    let streamed = upstream
        .requests()
        .iter()
        .any(|seen| seen.method == "POST" && seen.json()["stream"] == true);
    assert!(!streamed, "nothing is spent on what cannot be told");
}
