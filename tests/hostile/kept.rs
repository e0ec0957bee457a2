//! Canaries in everything that is kept of an answer: the ledger's file, its exports, the customer's page, receipts, `/status` and
//! `/metrics`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use farebox_ledger::{EntryQuery, csv, document};
use farebox_protocol::Family;

use super::canary::{SECRET, clean};
use crate::customer::sessions::Visitor;
use crate::support::upstream::{Reply, ScriptedUpstream, Speech};
use crate::support::{Gateway, TestKey, ask, path};

/// Answer ids that contain the provider's key: plain, where ids are shortened, encoded, in capitals, with forged lines.
fn ids() -> Vec<String> {
    let mut ids: Vec<String> = (150..210)
        .step_by(7)
        .map(|front| format!("{}{SECRET}", "x".repeat(front)))
        .collect();
    ids.extend([
        format!("chatcmpl-{SECRET}"),
        SECRET.to_uppercase(),
        STANDARD.encode(format!("id: {SECRET}")),
        hex::encode(SECRET),
        format!("id\r\nlevel=error {SECRET}\u{202e}\u{9b}2J\u{1b}[31m"),
        "sk-live-0123456789abcdef".to_owned(),
    ]);
    ids
}

/// Good answers with these ids, whole and streamed, then errors; each leaves an entry.
async fn ask_for_all(
    gateway: &Gateway,
    upstream: &ScriptedUpstream,
    key: &TestKey,
    family: Family,
) {
    for id in ids() {
        for stream in [false, true] {
            let speech = Speech::new(family, "PONG").id(&id);
            upstream.follow(if stream {
                speech.stream()
            } else {
                speech.whole()
            });
            let answer = gateway
                .post(path(family), key, &ask(family, "test-model", stream))
                .await;
            assert_eq!(answer.status, 200, "{}", answer.text);
        }
    }
    // A 401 comes last: it closes the target for everybody.
    for status in [400, 413, 429, 500, 401] {
        upstream.follow(Reply::error(
            status,
            SECRET,
            Some(SECRET),
            &format!("{SECRET}\u{202e} of {}", upstream.base_url()),
        ));
        assert_ne!(
            gateway
                .post(path(family), key, &ask(family, "test-model", false))
                .await
                .status,
            200
        );
    }
    gateway.settled().await;
}

/// What the key's owner can read, by its place.
async fn shown(gateway: &Gateway, key: &TestKey) -> Vec<(String, String)> {
    let mut places = Vec::new();
    let visitor = Visitor::signed_in(gateway, key).await;
    let mut pages: Vec<String> = ["", "/requests", "/payments", "/setup", "/models"]
        .map(str::to_owned)
        .into();
    pages.extend(
        [
            "/usage.csv",
            "/usage.json",
            "/requests.csv",
            "/requests.json",
        ]
        .map(str::to_owned),
    );
    let mut paths: Vec<String> = ["/v1/key", "/v1/credits", "/v1/usage"]
        .map(str::to_owned)
        .into();
    for charge in gateway.charges(key).await.iter().step_by(5) {
        let request = format!("req_{}", charge.operation);
        pages.push(format!("/requests/{request}"));
        paths.push(format!("/v1/generation?id={request}"));
    }
    for page in pages {
        let answer = visitor.get(&page).await;
        assert_eq!(answer.status, 200, "{page}");
        places.push((format!("/dashboard{page}"), answer.text));
    }
    for path in paths {
        // A key has ten of these a second.
        let mut answer = gateway.get(&path, key).await;
        while answer.status == 429 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            answer = gateway.get(&path, key).await;
        }
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        places.push((path, answer.text));
    }
    places
}

#[tokio::test]
async fn nothing_that_is_kept_of_an_answer_holds_a_secret() {
    for family in Family::ALL {
        let upstream = ScriptedUpstream::start(Reply::whole(200, "text/plain", "")).await;
        let gateway = Gateway::before(&upstream).await;
        let key = gateway.owner("50").await;
        ask_for_all(&gateway, &upstream, &key, family).await;
        let mut places = shown(&gateway, &key).await;
        let entries = gateway
            .ledger
            .entries(EntryQuery {
                key: Some(key.id),
                ..EntryQuery::default()
            })
            .await
            .unwrap();
        assert_eq!(entries.len(), 1 + 2 * ids().len() + 5, "each is kept");
        for entry in &entries {
            places.push((
                "an entry as JSON".to_owned(),
                document::json(entry).to_string(),
            ));
            places.push((
                "an entry as CSV".to_owned(),
                csv::line(document::row(entry).iter().map(String::as_str)),
            ));
        }
        for path in ["/status", "/metrics"] {
            places.push((path.to_owned(), gateway.ask(path).await.text));
        }
        for (place, text) in places {
            clean(&text, &format!("{family}: {place}"));
            assert!(
                !text.contains("sk-live-0123456789abcdef"),
                "{family}: {place}"
            );
            assert!(
                !text.contains("\nlevel=error"),
                "{family}: {place} has a forged line"
            );
        }
        for name in ["farebox.db", "farebox.db-wal"] {
            let bytes =
                std::fs::read(gateway.ledger_path().with_file_name(name)).unwrap_or_default();
            // The file also has other bytes than text.
            let text: String = bytes
                .iter()
                .map(|byte| {
                    if byte.is_ascii_graphic() {
                        char::from(*byte)
                    } else {
                        ' '
                    }
                })
                .collect();
            clean(&text, &format!("{family}: {name}"));
        }
    }
}
