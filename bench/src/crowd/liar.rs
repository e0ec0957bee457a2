//! A provider that answers properly, and lies to whoever asks for a lie: `lie-N` in a request names it.
//!
//! All keys share it, as customers share a provider: what it does to one must not reach another. Proper answers come from a thread
//! of ordinary priority; lies are told by threads that run when nobody else does, on a connection that ends with the lie.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::time::sleep;

use super::lowly::lowly;
use crate::answers::{BenchFamily, CannedAnswer, UPSTREAM_MODEL};
use crate::wire::MessageReader;

/// Ways to lie.
pub(crate) const LIES: u64 = 13;

/// Serves from a thread of its own for as long as this process lives.
pub(crate) fn start() -> io::Result<SocketAddr> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
    let address = listener.local_addr()?;
    let lies = lowly().worker_threads(1).build()?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => drop(tokio::spawn(serve(stream, lies.handle().clone()))),
                    Err(_) => sleep(Duration::from_millis(5)).await,
                }
            }
        });
    });
    Ok(address)
}

/// Answers on one connection until either side has had enough.
async fn serve(mut stream: TcpStream, lies: Handle) {
    let _ = stream.set_nodelay(true);
    let (mut reader, mut body, mut buffer) =
        (MessageReader::default(), Vec::new(), vec![0; 16 * 1024]);
    loop {
        let length = match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(length) => length,
        };
        let keep = |bytes: &[u8]| {
            body.extend_from_slice(bytes);
            Ok(())
        };
        match reader.feed(buffer.get(..length).unwrap_or_default(), keep) {
            Err(_) => return,
            Ok(None) => continue,
            Ok(Some(_)) => {}
        }
        let family = if memmem::find(reader.head(), b"/v1/messages").is_some() {
            BenchFamily::Messages
        } else {
            BenchFamily::Chat
        };
        if let Some(lie) = lie(&body) {
            let Ok(stream) = stream.into_std() else {
                return;
            };
            drop(lies.spawn(async move {
                let Ok(mut stream) = TcpStream::from_std(stream) else {
                    return;
                };
                let _ = tell(&mut stream, lie, family).await;
            }));
            return;
        }
        if stream.write_all(&proper(family, &body)).await.is_err() {
            return;
        }
        reader.reset();
        body.clear();
    }
}

/// The lie that is asked for.
fn lie(body: &[u8]) -> Option<u64> {
    let at = memmem::find(body, b"lie-")?;
    let digits: String = body
        .iter()
        .skip(at + 4)
        .map(|byte| char::from(*byte))
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

fn proper(family: BenchFamily, body: &[u8]) -> Vec<u8> {
    if memmem::find(body, b"\"stream\":true").is_some() {
        return streamed(
            "",
            &CannedAnswer::stream(family, UPSTREAM_MODEL, 20).body(),
            true,
        );
    }
    whole(
        "200 OK",
        "application/json",
        "",
        &CannedAnswer::whole(family, UPSTREAM_MODEL, 1).body(),
    )
}

fn whole(status: &str, kind: &str, header: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{header}content-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// The head of a stream with these bytes, and its end if it has one.
fn streamed(header: &str, bytes: &[u8], ends: bool) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{header}transfer-encoding: chunked\r\n\r\n"
    );
    let end: &[u8] = if ends { b"0\r\n\r\n" } else { b"" };
    [head.as_bytes(), &chunk(bytes), end].concat()
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// A lie is the last thing on its connection.
const CLOSE: &str = "connection: close\r\n";

/// Tells a lie; the connection is closed behind it.
async fn tell(stream: &mut TcpStream, lie: u64, family: BenchFamily) -> io::Result<()> {
    let json = "application/json";
    let error = br#"{"error":{"type":"server_error","message":"no"}}"#;
    match lie % LIES {
        0 => stream.write_all(&whole("403 Forbidden", json, CLOSE, error)).await,
        1 => stream.write_all(&whole("500 Internal Server Error", json, CLOSE, error)).await,
        2 => stream.write_all(&whole("400 Bad Request", "text/html", CLOSE, b"<html>no</html>")).await,
        3 => {
            let rest = format!("{CLOSE}retry-after: 600\r\n");
            stream.write_all(&whole("429 Too Many Requests", json, &rest, error)).await
        }
        4 => stream.write_all(&whole("200 OK", json, CLOSE, b"{\"usage\":{\"prompt_tokens\":-5}}")).await,
        5 => stream.write_all(&whole("401 Unauthorized", json, CLOSE, error)).await,
        6 => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{\"id\":").await,
        7 => {
            sleep(Duration::from_secs(20)).await;
            Ok(())
        }
        8 => {
            let large = [b"{\"a\":\"".as_slice(), &vec![b'x'; 8 << 20], b"\"}"].concat();
            stream.write_all(&whole("200 OK", json, CLOSE, &large)).await
        }
        9 => go_on_behind_the_usage(stream, family).await,
        // A header that never ends.
        10 => stream.write_all(format!("HTTP/1.1 200 OK\r\nx-a: {}\r\n", "y".repeat(600_000)).as_bytes()).await,
        // An interim answer that is followed by nothing.
        11 => {
            stream.write_all(b"HTTP/1.1 103 Early Hints\r\n\r\n").await?;
            sleep(Duration::from_secs(3)).await;
            Ok(())
        }
        _ => Ok(()),
    }
}

async fn go_on_behind_the_usage(stream: &mut TcpStream, family: BenchFamily) -> io::Result<()> {
    stream
        .write_all(&streamed(
            CLOSE,
            &CannedAnswer::stream(family, UPSTREAM_MODEL, 2).body(),
            false,
        ))
        .await?;
    let frame = chunk(
        &[
            b"data: {\"choices\":[],\"x\":\"".as_slice(),
            &vec![b'x'; 60_000],
            b"\"}\n\n",
        ]
        .concat(),
    );
    for _ in 0..200 {
        stream.write_all(&frame).await?;
    }
    stream.write_all(b"0\r\n\r\n").await
}
