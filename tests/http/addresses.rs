//! Addresses in requests: a private one is refused by its text, and a provider inside a private network is given none.

use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::upstream::ScriptedUpstream;
use crate::support::{CATALOG, Gateway, path, routes, talking};

/// A request with a picture at this address.
fn with_picture(family: Family, url: &str) -> Value {
    let part = match family {
        Family::Chat => json!({ "type": "image_url", "image_url": { "url": url } }),
        Family::Responses => json!({ "type": "input_image", "image_url": url }),
        Family::Messages => json!({ "type": "image", "source": { "type": "url", "url": url } }),
    };
    let turn = json!([{ "role": "user", "content": [part] }]);
    match family {
        Family::Responses => json!({ "model": "test-model", "input": turn }),
        _ => json!({ "model": "test-model", "max_tokens": 50, "messages": turn }),
    }
}

#[tokio::test]
async fn an_address_that_is_private_by_its_text_is_refused() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5").await;
    for family in Family::ALL {
        for url in [
            "http://169.254.169.254/latest/meta-data",
            "http://0x7f.1/",
            "http://[::ffff:10.0.0.1]/",
            "https://metadata.google.internal./",
            "https://intranet/logo.png",
            "https://user@example.com/a.png",
        ] {
            let refused = gateway
                .post(path(family), &key, &with_picture(family, url))
                .await;
            assert_eq!(refused.status, 400, "{family} {url}: {}", refused.text);
            assert!(
                refused.text.contains("the address of a picture is refused"),
                "{family} {url}: {}",
                refused.text
            );
        }
    }
    assert!(upstream.requests().is_empty());
    for family in Family::ALL {
        let body = with_picture(family, "https://example.com/a.png");
        let served = gateway.post(path(family), &key, &body).await;
        assert_eq!(served.status, 200, "{}", served.text);
    }
}

#[tokio::test]
async fn a_private_provider_is_given_no_addresses_unless_the_operator_says_so() {
    let (private, open) = (
        ScriptedUpstream::start(talking("PONG")).await,
        ScriptedUpstream::start(talking("PONG")).await,
    );
    let closed = routes(&private.base_url()).replace("private_urls = true", "");
    let gateway = Gateway::start(CATALOG, &closed).await;
    let key = gateway.key("5").await;
    for family in Family::ALL {
        let body = with_picture(family, "https://example.com/a.png");
        let refused = gateway.post(path(family), &key, &body).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        assert!(
            refused.text.contains("inline as `data:image/"),
            "{}",
            refused.text
        );
    }
    // Another target of the route takes it.
    let second = format!(
        "[provider.open]\nbase_url = \"{}\"\nspeaks = [\"chat\"]\nkey = {{ env = \"UPSTREAM_KEY\" }}\nprivate_urls = true\n",
        open.base_url()
    );
    let both = closed.replace(
        "model = \"upstream-model-1\" }",
        "model = \"upstream-model-1\" }, { provider = \"open\", model = \"m\" }",
    );
    let gateway = Gateway::start(CATALOG, &(both + &second)).await;
    let key = gateway.key("5").await;
    let body = with_picture(Family::Chat, "https://example.com/a.png");
    let served = gateway.post(path(Family::Chat), &key, &body).await;
    assert_eq!(served.status, 200, "{}", served.text);
    assert_eq!((private.requests().len(), open.requests().len()), (0, 1));
}
