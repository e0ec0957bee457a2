//! The shop beside the gateway, with a card processor that is slow to answer, and the callbacks that this processor sends.
//!
//! A callback with a right signature is from no stranger: whatever strangers do, each has to be acknowledged. Its event is of a kind
//! that books nothing.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;

use super::customer;
use crate::subjects::{Programs, RunningSubject, free_address, spawn};

/// What signs callbacks.
const SECRET: &str = "whsec_of_the_bench";
const EVENT: &str = r#"{"id":"evt_1","type":"customer.created","data":{"object":{}}}"#;
/// Between two callbacks.
const GAP: Duration = Duration::from_millis(500);
/// How long the processor takes to say that it does not know a checkout.
const SLOW: Duration = Duration::from_millis(500);

/// Starts the shop before the gateway with this admin listener and ledger.
pub(super) fn start(
    programs: &Programs,
    folder: &Path,
    admin: SocketAddr,
    ledger: &Path,
) -> Result<RunningSubject, String> {
    let fault = |error: std::io::Error| format!("the shop: {error}");
    let folder = folder.join("shop");
    fs::create_dir_all(&folder).map_err(fault)?;
    fs::write(folder.join("token"), token(programs, ledger)?).map_err(fault)?;
    fs::write(folder.join("key"), "sk_test_of_the_bench").map_err(fault)?;
    fs::write(folder.join("webhook"), SECRET).map_err(fault)?;
    let (address, processor) = (free_address().map_err(fault)?, processor().map_err(fault)?);
    let here = folder.display();
    let settings = format!(
        "name = \"Bench\"\nlisten = \"{address}\"\ntrusted_proxy = [\"127.0.0.1\"]\ncurrency = \"EUR\"\n\
         [gateway]\napi = \"http://{admin}\"\nurl = \"http://localhost\"\ntoken = {{ file = \"{here}/token\" }}\n\
         [processor.stripe]\napi = \"http://{processor}\"\nkey = {{ file = \"{here}/key\" }}\n\
         webhook_secrets = [{{ file = \"{here}/webhook\" }}]\n[[offer]]\ncredit = \"10\"\nprice = \"11.90\"\n"
    );
    let file = folder.join("shop.toml");
    fs::write(&file, settings).map_err(fault)?;
    // Both programs are built into one folder.
    let mut command = Command::new(programs.farebox.with_file_name("farebox-shop"));
    command.arg("--config").arg(file);
    let mut shop = spawn(command, "0-1", &folder, "farebox-shop", address)?;
    shop.wait_until_it_answers()?;
    Ok(shop)
}

/// A token that sells.
fn token(programs: &Programs, ledger: &Path) -> Result<String, String> {
    let words = "tokens create shop --role sell --daily 500 --json";
    let mut command = Command::new(&programs.farebox);
    command.arg("--ledger").arg(ledger).env_clear();
    let output = command.args(words.split(' ')).output();
    let output = output.map_err(|error| format!("{}: {error}", programs.farebox.display()))?;
    let made: Option<Value> = serde_json::from_slice(&output.stdout).ok();
    let secret = made.and_then(|made| Some(made.get("secret")?.as_str()?.to_owned()));
    secret.ok_or_else(|| {
        format!(
            "no token for the shop: {}",
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

/// A processor that knows no checkout, and says so late. It serves until this process ends.
fn processor() -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let _ = stream.read(&mut [0; 16 * 1024])?;
    std::thread::sleep(SLOW);
    stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
}

/// What became of callbacks.
#[derive(Debug, Default)]
pub(super) struct ToldCallbacks {
    pub(super) sent: usize,
    /// Those that were not acknowledged.
    pub(super) faults: Vec<String>,
    pub(super) slowest: Duration,
}

/// Sends one callback after the other for this long.
pub(super) fn tell(shop: SocketAddr, time: Duration) -> ToldCallbacks {
    let (until, mut told) = (Instant::now() + time, ToldCallbacks::default());
    while Instant::now() < until {
        let begun = Instant::now();
        match customer::exchange(&mut None, shop, &callback()) {
            Ok((200, _)) => {}
            Ok((status, body)) => {
                let text = String::from_utf8_lossy(&body);
                told.faults.push(format!("a callback got {status}: {text}"));
            }
            Err(error) => told.faults.push(format!("a callback: {error}")),
        }
        told.sent += 1;
        told.slowest = told.slowest.max(begun.elapsed());
        std::thread::sleep(GAP);
    }
    told
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn callback() -> Vec<u8> {
    let at = now();
    let mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).map(|mut mac| {
        mac.update(format!("{at}.{EVENT}").as_bytes());
        mac.finalize().into_bytes()
    });
    let signature: String = mac
        .iter()
        .flatten()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    [head(at, &signature, EVENT.len()), EVENT.to_owned()]
        .concat()
        .into_bytes()
}

/// The head of a callback that somebody made up, and who can sign nothing.
pub(super) fn forged(length: usize) -> String {
    head(now(), &"0".repeat(64), length)
}

fn head(at: u64, signature: &str, length: usize) -> String {
    format!(
        "POST /webhook HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nstripe-signature: t={at},v1={signature}\r\n\
         content-length: {length}\r\n\r\n"
    )
}
