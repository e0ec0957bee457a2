//! Web pages as clients: cross-origin requests are accepted only from the origins that the operator names.

use std::path::Path;

use reqwest::header::HeaderMap;
use reqwest::{Method, Response};

use crate::support::process::{Served, client, farebox};

const PAGE: &str = "https://app.example.com";

fn served(folder: &Path, arguments: &[&str]) -> Served {
    assert!(farebox(folder, &["init"]).status().unwrap().success());
    Served::start(folder, arguments)
}

async fn preflight(base: &str, path: &str, origin: &str) -> Response {
    let request = client()
        .request(Method::OPTIONS, format!("{base}{path}"))
        .header("origin", origin);
    let request = request.header("access-control-request-method", "POST");
    request
        .header(
            "access-control-request-headers",
            "authorization,content-type,x-stainless-os",
        )
        .send()
        .await
        .unwrap()
}

fn allowed(headers: &HeaderMap) -> Option<&str> {
    headers
        .get("access-control-allow-origin")
        .map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn it_is_off_by_default() {
    let folder = tempfile::tempdir().unwrap();
    let served = served(folder.path(), &[]);
    let refused = preflight(&served.base, "/v1/chat/completions", PAGE).await;
    assert!(refused.status() != 204 && allowed(refused.headers()).is_none());
    let plain = client()
        .get(format!("{}/v1/models", served.base))
        .header("origin", PAGE)
        .send()
        .await
        .unwrap();
    assert!(
        plain.status() == 401
            && allowed(plain.headers()).is_none()
            && plain.headers().get("vary").is_none()
    );
}

#[tokio::test]
async fn named_origins_reach_the_customers_paths_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let served = served(
        folder.path(),
        &[
            "--cors-origin",
            PAGE,
            "--cors-origin",
            "http://localhost:3000",
        ],
    );
    for path in [
        "/v1/chat/completions",
        "/native/v1/messages",
        "/v1/models",
        "/user/balance",
    ] {
        let answer = preflight(&served.base, path, PAGE).await;
        assert_eq!(
            (answer.status().as_u16(), allowed(answer.headers())),
            (204, Some(PAGE)),
            "{path}"
        );
        let headers = answer.headers()["access-control-allow-headers"]
            .to_str()
            .unwrap();
        assert!(
            headers.contains("authorization") && headers.contains("x-stainless-os"),
            "{headers}"
        );
        assert_eq!(answer.headers()["vary"], "origin");
        assert!(
            allowed(
                preflight(&served.base, path, "https://evil.example")
                    .await
                    .headers()
            )
            .is_none(),
            "{path}"
        );
    }
    let refused = client()
        .get(format!("{}/v1/models", served.base))
        .header("origin", PAGE)
        .send()
        .await
        .unwrap();
    assert_eq!(
        (refused.status().as_u16(), allowed(refused.headers())),
        (401, Some(PAGE)),
        "a page may read refusals"
    );
    assert!(
        refused.headers()["access-control-expose-headers"]
            .to_str()
            .unwrap()
            .contains("x-request-id, request-id, x-farebox-slug")
    );
    assert!(
        refused
            .headers()
            .get("access-control-allow-credentials")
            .is_none()
    );
    let dashboard = client()
        .get(format!("{}/dashboard", served.base))
        .header("origin", PAGE)
        .send()
        .await
        .unwrap();
    assert!(
        allowed(dashboard.headers()).is_none(),
        "cookies stay with the dashboard's own pages"
    );
}

#[test]
fn an_origin_is_written_as_browsers_do() {
    let folder = tempfile::tempdir().unwrap();
    for wrong in [
        "app.example.com",
        "https://app.example.com/",
        "https://app.example.com/page",
        "null",
    ] {
        assert_eq!(
            farebox(folder.path(), &["check", "--cors-origin", wrong])
                .output()
                .unwrap()
                .status
                .code(),
            Some(2),
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn the_root_leads_browsers_to_the_dashboard_and_programs_to_their_base_urls() {
    let folder = tempfile::tempdir().unwrap();
    let served = served(folder.path(), &[]);
    let unmoved = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let browser = unmoved
        .get(format!("{}/", served.base))
        .header("accept", "text/html,application/xhtml+xml")
        .send()
        .await
        .unwrap();
    assert_eq!(
        (
            browser.status().as_u16(),
            browser.headers()["location"].to_str().unwrap()
        ),
        (303, "/dashboard")
    );
    let program = unmoved
        .get(format!("{}/", served.base))
        .send()
        .await
        .unwrap();
    assert_eq!(program.status(), 404);
    assert!(
        program.text().await.unwrap().contains("/native"),
        "both base URLs are named"
    );
    assert_eq!(
        unmoved
            .head(format!("{}/", served.base))
            .send()
            .await
            .unwrap()
            .status(),
        200
    );
}
