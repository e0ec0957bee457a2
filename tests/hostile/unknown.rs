//! Answers of unknown shapes in all six directions and within each family: whatever a provider adds, and wherever, nothing in it
//! tells customers whose account it is.

use farebox_protocol::Family;
use serde_json::{Map, Value, json};

use super::canary::SECRET;
use crate::support::upstream::{Reply, ScriptedUpstream, Speech};
use crate::support::{DIRECTIONS, Gateway, ask, catalog, path, routes_speaking};

const ORGANISATION: &str = "org-Zk83hRt6LqVb21xYcPmN";
const ACCOUNT: &str = "481516234211";
const PROJECT: &str = "proj_7hTgPq92LmXs4";
/// A word that names nobody: what a family does not know passes in places where new abilities appear, without the names in it.
const HARMLESS: &str = "harmless-5c1e";

/// Everything that identifies the account; none of it may be in what a customer reads.
#[track_caller]
fn tells_nothing(text: &str, host: &str, place: &str) {
    let lower = text.to_ascii_lowercase();
    for identity in [SECRET, host, ORGANISATION, ACCOUNT, PROJECT] {
        let identity = identity.to_ascii_lowercase();
        assert!(!lower.contains(&identity), "{place}: {identity} in {text}");
    }
}

/// Members that no family has, as providers write them.
fn additions(host: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("organization", json!(ORGANISATION)),
        ("x_key", json!([SECRET, { "used": SECRET }])),
        (
            "routing",
            json!({ "upstream": format!("https://{host}/v1"), "project": PROJECT }),
        ),
        (
            "provider_metadata",
            json!({ "arn": format!("arn:aws:bedrock:us-east-1:{ACCOUNT}:model/x"), "account": ACCOUNT }),
        ),
        ("estimated_cost", json!(0.25)),
    ]
}

/// Puts them into every object of an answer; with `envelope`, only into those that are no content.
fn plant(value: &mut Value, host: &str, envelope: bool) {
    let Value::Object(members) = value else {
        if let Value::Array(items) = value {
            items
                .iter_mut()
                .for_each(|item| plant(item, host, envelope));
        }
        return;
    };
    for (name, inner) in &mut *members {
        let is_content = matches!(
            name.as_str(),
            "delta" | "content" | "content_block" | "output" | "item" | "part"
        ) || name == "message" && inner.get("usage").is_none();
        if !(envelope && is_content) {
            plant(inner, host, envelope);
        }
    }
    add(members, host);
}

fn add(members: &mut Map<String, Value>, host: &str) {
    for (name, value) in additions(host) {
        members.entry(name).or_insert(value);
    }
}

/// An event of no family. Its names are escaped, as some serialisers write them.
fn unknown_event(host: &str) -> String {
    let unicode = |text: &str| text.replace('-', "\\u002d").replace('.', "\\u002e");
    let (key, organisation, escaped) = (unicode(SECRET), unicode(ORGANISATION), unicode(host));
    format!(
        "event: vendor.debug\ndata: {{\"type\":\"vendor.debug\",\"note\":\"{HARMLESS}\",\"key\":\"{key}\",\"org\":\"{organisation}\",\
         \"at\":[\"https:\\/\\/{host}\\/v1\",\"failed at\\n{host}\\n\",\"{escaped}\"],\
         \"inner\":\"{{\\\"key\\\":\\\"{SECRET}\\\",\\\"account\\\":\\\"{ACCOUNT}\\\"}}\",\"project\":\"{PROJECT}\"}}\n\n"
    )
}

/// The family's answer with them.
fn answer(family: Family, stream: bool, host: &str, envelope: bool) -> String {
    let planted = |text: &str| match serde_json::from_str::<Value>(text) {
        Ok(mut value) if value.is_object() => {
            plant(&mut value, host, envelope);
            value.to_string()
        }
        _ => text.to_owned(),
    };
    let speech = Speech::new(family, "PONG");
    if !stream {
        return planted(&speech.whole().texts().concat());
    }
    let frames = speech.stream().texts();
    // A frame of chat that is no part of an answer is an error until the answer has ended.
    let odd = match family {
        Family::Chat => frames.len() - 1,
        Family::Responses | Family::Messages => 2,
    };
    let mut out = format!(": {SECRET}\nid: {ORGANISATION}\n\n");
    for (at, frame) in frames.iter().enumerate() {
        if at == odd {
            out.push_str(&unknown_event(host));
        }
        for line in frame.split_inclusive('\n') {
            match line.strip_prefix("data: ") {
                Some(data) => out.push_str(&format!("data: {}\n", planted(data.trim_end()))),
                None => out.push_str(line),
            }
        }
    }
    out
}

async fn read_by(caller: Family, speaks: Family) {
    for stream in [false, true] {
        let place = format!("{caller} on {speaks} stream={stream}");
        let upstream = ScriptedUpstream::start(Reply::whole(200, "text/plain", "")).await;
        let host = upstream.base_url();
        let host = host.split("://").nth(1).unwrap();
        let host = host.split('/').next().unwrap();
        let kind = if stream {
            "text/event-stream"
        } else {
            "application/json"
        };
        // Within a family, content passes as it is: new members there belong to new abilities.
        let body = answer(speaks, stream, host, caller == speaks);
        assert!(body.matches(ORGANISATION).count() > 2, "{body}");
        upstream.follow(
            Reply::whole(200, kind, body)
                .header("openai-organization", ORGANISATION)
                .header("x-request-id", PROJECT),
        );
        let gateway = Gateway::start(
            &catalog(speaks),
            &routes_speaking(&upstream.base_url(), speaks),
        )
        .await;
        let key = gateway.key("5.00").await;
        let told = gateway
            .post(path(caller), &key, &ask(caller, "test-model", stream))
            .await;
        assert!(
            told.status == 200 && told.text.contains("PONG"),
            "{place}: {}",
            told.text
        );
        tells_nothing(&told.text, host, &place);
        tells_nothing(&format!("{:?}", told.headers), host, &place);
        if stream && caller == speaks {
            assert!(told.text.contains(HARMLESS), "{place}: {}", told.text);
        }
        gateway.settled().await;
        let records = format!("{:?}", gateway.records.all());
        assert!(!records.contains(SECRET), "{place}: {records}");
    }
}

#[tokio::test]
async fn unknown_shapes_within_a_family_name_nobody() {
    for family in Family::ALL {
        read_by(family, family).await;
    }
}

#[tokio::test]
async fn unknown_shapes_in_all_six_directions_name_nobody() {
    for (caller, speaks) in DIRECTIONS {
        read_by(caller, speaks).await;
    }
}
