//! One request to a gateway on this machine, by hand: the commands need no HTTP library for it.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// An answer whose length was known beforehand.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
}

/// Sends one request (`GET /path`) and reads its whole answer.
pub(super) async fn ask(to: SocketAddr, request: &str, bearer: Option<&str>, body: &str) -> std::io::Result<Answer> {
    let authorization = bearer.map(|secret| format!("authorization: Bearer {secret}\r\n")).unwrap_or_default();
    let length = body.len();
    let head = format!(
        "{request} HTTP/1.1\r\nhost: {to}\r\n{authorization}content-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    let exchange = async {
        let mut stream = TcpStream::connect(to).await?;
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.map(|_| answer)
    };
    let text = tokio::time::timeout(PATIENCE, exchange).await.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(|| std::io::Error::other("the answer is not HTTP"))?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    Ok(Answer { status, body: body.to_owned() })
}
