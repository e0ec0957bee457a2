//! Defaults in the file: they bind who has set nothing, from the next request on, and go with their lines.

use std::fs;
use std::time::{Duration, Instant};

use crate::support::upstream::ScriptedUpstream;
use crate::support::{CATALOG, Gateway, chat, routes, talking};

const CHAT: &str = "/v1/chat/completions";
/// A save is in use within a second on an idle machine; tests also run on busy ones.
const SOON: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_default_binds_who_has_set_nothing_and_goes_with_its_line() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let folder = tempfile::tempdir().unwrap();
    let [catalog, paths] = ["catalog.toml", "routes.toml"].map(|name| folder.path().join(name));
    fs::write(&catalog, CATALOG).unwrap();
    fs::write(&paths, routes(&upstream.base_url())).unwrap();
    let gateway = Gateway::watching(&catalog, &paths).await;
    let key = gateway.key("50.00").await;
    let body = chat("test-model", false);
    let asked = || gateway.post(CHAT, &key, &body);
    // Until the ledger has so many acts on defaults.
    let save = async |lines: &str, acts: usize| {
        fs::write(&catalog, format!("{CATALOG}{lines}")).unwrap();
        let begun = Instant::now();
        while gateway.ledger.house_acts().await.unwrap().len() < acts {
            assert!(begun.elapsed() < SOON, "{lines}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert_eq!(asked().await.status, 200);
    let spent = gateway.charges(&key).await.remove(0).amount;
    let daily = "\n[defaults.key]\ncaps = [ { limit = \"0.000001\", per = \"day\" } ]\n";
    save(daily, 1).await;
    let refused = asked().await;
    assert_eq!(refused.status, 429, "{}", refused.text);
    let words = "the key's cap of 0.000001 USD per day";
    assert!(refused.text.contains(words), "{}", refused.text);
    let found = gateway.account(&key).await;
    let counted = found.caps.iter().next().unwrap();
    assert!(counted.is_default());
    assert_eq!(counted.current.charged, spent.checked_neg().unwrap());
    save("\n[defaults.key]\nconcurrency = 7\n", 2).await;
    let found = gateway.account(&key).await;
    assert_eq!(
        (found.concurrency(), found.caps.is_empty()),
        (Some(7), true)
    );
    assert_eq!(asked().await.status, 200);
    save("", 3).await;
    assert_eq!(gateway.account(&key).await.concurrency(), None);
}
