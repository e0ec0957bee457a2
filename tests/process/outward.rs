//! The way out of the house: a provider's own HTTP proxy, the environment's, and what goes directly.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::support::process::{Served, funded_key};
use crate::support::upstream::ScriptedUpstream;
use crate::support::{CATALOG, routes, talking};

/// A proxy that records the heads of requests. It opens no tunnel, and forwards what is not encrypted to one place, if it has one.
struct Proxy {
    address: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start(to: Option<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let heads = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heads);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (kept, to) = (Arc::clone(&kept), to.clone());
                std::thread::spawn(move || serve(stream, &kept, to.as_deref()));
            }
        });
        Self { address, heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, heads: &Mutex<Vec<String>>, to: Option<&str>) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?;
    heads.lock().unwrap().push(head.clone());
    let Some(to) = to.filter(|_| !head.starts_with("CONNECT")) else {
        let refusal = "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        return stream.write_all(refusal.as_bytes()).ok();
    };
    let mut upstream = TcpStream::connect(to).ok()?;
    let direct = head.replacen("http://vendor.example", "", 1);
    upstream.write_all(direct.as_bytes()).ok()?;
    let (mut back, mut out) = (upstream.try_clone().ok()?, stream.try_clone().ok()?);
    std::thread::spawn(move || std::io::copy(&mut back, &mut out));
    std::io::copy(&mut stream, &mut upstream).ok().map(|_| ())
}

/// A gateway whose provider is at this address.
fn gateway(folder: &Path, base_url: &str, fields: &str, environment: &[(&str, &str)]) -> Served {
    let files = routes(base_url).replacen("[provider.up]", &format!("[provider.up]\n{fields}"), 1);
    std::fs::write(folder.join("routes.toml"), files).unwrap();
    std::fs::write(folder.join("catalog.toml"), CATALOG).unwrap();
    let mut all = vec![
        ("UPSTREAM_KEY", "upstream-key-0123"),
        ("HTTPS_PROXY", ""),
        ("https_proxy", ""),
        ("NO_PROXY", ""),
        ("no_proxy", ""),
    ];
    all.extend_from_slice(environment);
    Served::start_with(folder, &[], &all)
}

async fn ask(served: &Served, folder: &Path) -> Result<serde_json::Value, String> {
    let key = funded_key(folder, "5");
    served
        .ask("test-model", key["secret"].as_str().unwrap())
        .await
}

#[tokio::test]
async fn an_answer_comes_through_a_providers_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let base = upstream.base_url();
    let place = base.strip_prefix("http://").unwrap();
    let proxy = Proxy::start(Some(place.split('/').next().unwrap().to_owned()));
    let fields = format!("proxy = \"{}\"", proxy.address);
    let served = gateway(folder.path(), "http://vendor.example/v1", &fields, &[]);
    let answer = ask(&served, folder.path()).await.unwrap();
    assert!(answer.to_string().contains("PONG"), "{answer}");
    assert!(
        proxy.heads()[0].starts_with("POST http://vendor.example/v1/chat/completions "),
        "{:?}",
        proxy.heads()
    );
}

#[tokio::test]
async fn what_is_encrypted_asks_for_a_tunnel_and_shows_the_proxy_no_key() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = Proxy::start(None);
    // A proxy's address with a password in it is a secret.
    let address = proxy.address.replacen("http://", "http://me:word-0123@", 1);
    let served = gateway(
        folder.path(),
        "https://vendor.example/v1",
        "proxy = { env = \"OUT\" }",
        &[("OUT", &address)],
    );
    ask(&served, folder.path()).await.unwrap_err();
    let heads = proxy.heads();
    let head = heads.first().unwrap().to_ascii_lowercase();
    assert!(head.starts_with("connect vendor.example:443 "), "{head}");
    assert!(head.contains("proxy-authorization: basic "), "{head}");
    assert!(!head.contains("upstream-key"), "{head}");
    assert!(!served.log().contains("word-0123"), "{}", served.log());
}

#[tokio::test]
async fn the_environments_proxy_is_for_what_leaves_the_house() {
    let proxy = Proxy::start(None);
    let environment = [("HTTPS_PROXY", proxy.address.as_str())];
    let vendor = "https://vendor.invalid/v1";
    let through = async |base: &str, fields: &str, environment: &[(&str, &str)]| {
        let folder = tempfile::tempdir().unwrap();
        let before = proxy.heads().len();
        let served = gateway(folder.path(), base, fields, environment);
        ask(&served, folder.path()).await.unwrap_err();
        proxy.heads().len() > before
    };
    assert!(through(vendor, "", &environment).await);
    let except = [environment[0], ("NO_PROXY", "other.example,vendor.invalid")];
    assert!(!through(vendor, "", &except).await, "as NO_PROXY says");
    assert!(
        !through(vendor, "proxy = \"none\"", &environment).await,
        "as the provider says"
    );
    assert!(
        !through("https://127.0.0.1:9/v1", "", &environment).await,
        "within the house"
    );
}
