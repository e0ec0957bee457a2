//! A provider that answers properly, and lies to whoever asks for a lie: `lie-N` in a request names it.
//!
//! All keys share it, as customers share a provider: what it does to one must not reach another.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use crate::answers::{Answer, Family, UPSTREAM_MODEL};
use crate::wire::Reader;

/// Ways to lie.
pub(crate) const LIES: u64 = 12;

/// Serves from a thread of its own for as long as this process lives.
pub(crate) fn start() -> io::Result<SocketAddr> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => drop(tokio::spawn(serve(stream))),
                    Err(_) => sleep(Duration::from_millis(5)).await,
                }
            }
        });
    });
    Ok(address)
}

/// Answers on one connection until either side has had enough.
async fn serve(mut stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let (mut reader, mut body, mut buffer) = (Reader::default(), Vec::new(), vec![0; 16 * 1024]);
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
        let family = if memmem::find(reader.head(), b"/v1/messages").is_some() { Family::Messages } else { Family::Chat };
        let answered = match lie(&body) {
            None => stream.write_all(&proper(family, &body)).await,
            Some(lie) => tell(&mut stream, lie, family).await,
        };
        if answered.is_err() {
            return;
        }
        reader.reset();
        body.clear();
    }
}

/// The lie that is asked for.
fn lie(body: &[u8]) -> Option<u64> {
    let at = memmem::find(body, b"lie-")?;
    let digits: String = body.iter().skip(at + 4).map(|byte| char::from(*byte)).take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn proper(family: Family, body: &[u8]) -> Vec<u8> {
    if memmem::find(body, b"\"stream\":true").is_some() {
        return streamed(&Answer::stream(family, UPSTREAM_MODEL, 20).body(), true);
    }
    whole("200 OK", "application/json", "", &Answer::whole(family, UPSTREAM_MODEL).body())
}

fn whole(status: &str, kind: &str, header: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{header}content-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// The head of a stream with these bytes, and its end if it has one.
fn streamed(bytes: &[u8], ends: bool) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let end: &[u8] = if ends { b"0\r\n\r\n" } else { b"" };
    [head.as_bytes(), &chunk(bytes), end].concat()
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// Tells a lie; an error closes the connection.
async fn tell(stream: &mut TcpStream, lie: u64, family: Family) -> io::Result<()> {
    let json = "application/json";
    let error = br#"{"error":{"type":"server_error","message":"no"}}"#;
    let done = Answer::stream(family, UPSTREAM_MODEL, 2).body();
    match lie % LIES {
        0 => stream.write_all(&whole("403 Forbidden", json, "", error)).await,
        1 => stream.write_all(&whole("500 Internal Server Error", json, "", error)).await,
        2 => stream.write_all(&whole("400 Bad Request", "text/html", "", b"<html>no</html>")).await,
        3 => stream.write_all(&whole("429 Too Many Requests", json, "retry-after: 600\r\n", error)).await,
        4 => stream.write_all(&whole("200 OK", json, "", b"{\"usage\":{\"prompt_tokens\":-5}}")).await,
        5 => Err(io::ErrorKind::ConnectionAborted.into()),
        6 => {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{\"id\":")
                .await?;
            Err(io::ErrorKind::ConnectionAborted.into())
        }
        7 => {
            sleep(Duration::from_secs(20)).await;
            Err(io::ErrorKind::TimedOut.into())
        }
        // A large answer, and one that goes on behind its final usage.
        8 => {
            stream.write_all(&whole("200 OK", json, "", &[b"{\"a\":\"".as_slice(), &vec![b'x'; 8 << 20], b"\"}"].concat())).await
        }
        9 => {
            stream.write_all(&streamed(&done, false)).await?;
            let frame = chunk(&[b"data: {\"choices\":[],\"x\":\"".as_slice(), &vec![b'x'; 60_000], b"\"}\n\n"].concat());
            for _ in 0..200 {
                stream.write_all(&frame).await?;
            }
            stream.write_all(b"0\r\n\r\n").await
        }
        // A header that never ends, and an interim answer that is followed by nothing.
        10 => {
            stream.write_all(format!("HTTP/1.1 200 OK\r\nx-a: {}\r\n", "y".repeat(600_000)).as_bytes()).await?;
            Err(io::ErrorKind::ConnectionAborted.into())
        }
        _ => {
            stream.write_all(b"HTTP/1.1 103 Early Hints\r\n\r\n").await?;
            sleep(Duration::from_secs(3)).await;
            Err(io::ErrorKind::TimedOut.into())
        }
    }
}
