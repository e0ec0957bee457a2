//! The operator's keys and headers: who gets them, in which order, and that nobody else can read them.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use super::*;
use crate::config::{Secrets, Source, load};

struct Vault(HashMap<&'static str, &'static str>);

impl Secrets for Vault {
    fn variable(&self, name: &str) -> Option<String> {
        self.0.get(name).map(|&value| value.to_owned())
    }

    fn file(&self, _path: &Path) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }
}

const CATALOG: &str = r#"
[[model]]
model = "One"
slug = "public-slug"
provider = "P"
best_path = "chat"
best_environments = ["x"]
price = { input = "1", output = "1" }
capabilities = ["streaming"]
limits = { context = 1000, max_output = 100 }
"#;

fn loaded(upstream: &ScriptedUpstream, more: &str) -> Config {
    let routes = format!(
        r#"
[provider.main]
base_url = "{}"
speaks = ["chat", "messages"]
{more}

[[route]]
slug = "public-slug"
targets = [ {{ provider = "main", model = "hidden-model-1" }} ]
"#,
        upstream.base_url()
    );
    let vault = Vault(HashMap::from([
        ("K1", "first-key-0001"),
        ("K2", "second-key-0002"),
        ("H", "header-value-3"),
    ]));
    let (config, diagnostics) = load(
        &Source::new("catalog.toml", CATALOG),
        &Source::new("routes.toml", routes),
        &vault,
    );
    config.unwrap_or_else(|| panic!("{diagnostics:?}"))
}

async fn ask(
    upstreams: &Upstreams,
    config: &Config,
    family: Family,
) -> Result<UpstreamAnswer, DispatchError> {
    let call = UpstreamCall::new(
        &config.catalog.models[0].route,
        farebox_door::byte_room::Holder(1),
        family,
        TargetOperation::Generate,
    );
    dispatch(upstreams, call, None).await
}

#[tokio::test]
async fn keys_are_sent_in_the_style_of_the_family_or_the_file() {
    let upstream = ScriptedUpstream::tolerant(Speech::new(Family::Chat, "x").whole()).await;
    let config = loaded(&upstream, "keys = [ { env = \"K1\" }, { env = \"K2\" } ]");
    let upstreams = Upstreams::new(&config).unwrap();
    ask(&upstreams, &config, Family::Chat).await.unwrap();
    upstream.follow(Speech::new(Family::Messages, "x").whole());
    ask(&upstreams, &config, Family::Messages).await.unwrap();
    upstream.follow(Speech::new(Family::Chat, "x").whole());
    let sent = |at: usize, name: &str| upstream.requests()[at].header(name).map(str::to_owned);
    assert_eq!(
        sent(0, "authorization").as_deref(),
        Some("Bearer first-key-0001")
    );
    assert_eq!(
        (sent(1, "x-api-key").as_deref(), sent(1, "authorization")),
        (Some("first-key-0001"), None)
    );

    let config = loaded(
        &upstream,
        "key = { env = \"K1\" }\nauth = \"x-api-key\"\nheaders = { x-extra = { env = \"H\" } }",
    );
    upstreams.reconcile(&config);
    ask(&upstreams, &config, Family::Chat).await.unwrap();
    assert_eq!(
        (
            sent(2, "x-api-key").as_deref(),
            sent(2, "x-extra").as_deref()
        ),
        (Some("first-key-0001"), Some("header-value-3"))
    );
}

#[tokio::test]
async fn no_secret_is_in_an_error_a_reason_or_debug() {
    let wording = "key first-key-0001 of hidden-model-1 and header-value-3 are wrong";
    let client = Reply::error(400, "invalid_request_error", None, wording);
    let operator = Reply::error(401, "invalid_request_error", None, wording);
    let upstream = ScriptedUpstream::tolerant([client, operator]).await;
    let config = loaded(
        &upstream,
        "key = { env = \"K1\" }\nheaders = { x-extra = { env = \"H\" } }",
    );
    let upstreams = Upstreams::new(&config).unwrap();

    let Err(DispatchError::ClientFault { error, .. }) =
        ask(&upstreams, &config, Family::Chat).await
    else {
        panic!()
    };
    assert_eq!(
        error.message,
        "key [key] of public-slug and [key] are wrong"
    );

    let Err(DispatchError::NoTarget { attempts, .. }) =
        ask(&upstreams, &config, Family::Chat).await
    else {
        panic!()
    };
    assert_eq!(attempts[0].class, FailureClass::Operator);
    assert_eq!(
        *attempts[0].reason,
        "401 invalid_request_error key [key] of hidden-model-1 and [key] are wrong"
    );
    let shown = format!("{upstreams:?}");
    assert!(
        shown.contains("main/hidden-model-1")
            && !shown.contains("-key-")
            && !shown.contains("header-value"),
        "{shown}"
    );

    let states = upstreams.states();
    assert_eq!(
        (states.len(), states[0].slug.as_str(), states[0].errors),
        (1, "public-slug", 1)
    );
}

#[tokio::test]
async fn a_key_that_is_replaced_keeps_its_account() {
    let upstream = ScriptedUpstream::tolerant(Speech::new(Family::Chat, "x").whole()).await;
    let before = loaded(&upstream, "keys = [ { env = \"K1\" }, { env = \"K2\" } ]");
    let after = loaded(&upstream, "keys = [ { env = \"K1\" }, { env = \"H\" } ]");
    let upstreams = Upstreams::new(&before).unwrap();
    let asked = async |config: &Config| {
        for whole in 0..8 {
            let conversation = Conversation {
                whole,
                request: 0,
                cached_for: Duration::ZERO,
            };
            let route = &config.catalog.models[0].route;
            let (holder, family) = (farebox_door::byte_room::Holder(1), Family::Chat);
            let call = UpstreamCall::new(route, holder, family, TargetOperation::Generate);
            dispatch(&upstreams, call, Some(conversation))
                .await
                .unwrap();
        }
    };
    asked(&before).await;
    upstreams.reconcile(&after);
    asked(&after).await;
    let sent: Vec<String> = upstream
        .requests()
        .iter()
        .map(|seen| seen.header("authorization").unwrap().to_owned())
        .collect();
    let renamed: Vec<String> = sent[..8]
        .iter()
        .map(|key| key.replace("second-key-0002", "header-value-3"))
        .collect();
    assert_eq!(sent[8..], renamed);
    let counted: Vec<u64> = upstreams
        .accounts("main")
        .iter()
        .map(|one| one.requests)
        .collect();
    assert_eq!(counted.iter().sum::<u64>(), 16, "{counted:?}");
}
