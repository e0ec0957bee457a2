//! One request to a gateway on this machine.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::tls;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The largest answer that is read.
const MAX_BODY: usize = 32 << 20;

/// A whole answer.
pub(super) struct HttpAnswer {
    pub(super) status: u16,
    pub(super) body: String,
}

/// `GET path`, with a bearer token if one is given; over TLS if a certificate is, which must be the gateway's.
pub(super) async fn get(
    to: SocketAddr,
    path: &str,
    bearer: Option<&str>,
    certificate: Option<&Path>,
) -> std::io::Result<HttpAnswer> {
    exchange(to, Request::get(path), bearer, "", certificate).await
}

/// `POST path` with a JSON body.
pub(super) async fn post(
    to: SocketAddr,
    path: &str,
    bearer: Option<&str>,
    json: &str,
) -> std::io::Result<HttpAnswer> {
    exchange(
        to,
        Request::post(path).header(header::CONTENT_TYPE, "application/json"),
        bearer,
        json,
        None,
    )
    .await
}

/// A way to the gateway, encrypted or not.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

async fn exchange(
    to: SocketAddr,
    mut request: hyper::http::request::Builder,
    bearer: Option<&str>,
    body: &str,
    certificate: Option<&Path>,
) -> std::io::Result<HttpAnswer> {
    if let Some(token) = bearer {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request
        .header(header::HOST, to.to_string())
        .body(Full::<Bytes>::from(body.to_owned()))
        .map_err(std::io::Error::other)?;
    let exchange = async {
        let stream = TcpStream::connect(to).await?;
        let stream: Box<dyn Stream> = match certificate {
            Some(file) => Box::new(tls::connect(stream, file).await?),
            None => Box::new(stream),
        };
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(std::io::Error::other)?;
        let answer = async move {
            let answer = sender.send_request(request).await?;
            let (head, body) = answer.into_parts();
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>((
                head.status,
                Limited::new(body, MAX_BODY).collect().await?.to_bytes(),
            ))
        };
        // The connection closes when its only sender is dropped, after the answer.
        let (answer, _) = tokio::join!(answer, connection);
        let (status, body) = answer.map_err(std::io::Error::other)?;
        let body = String::from_utf8(body.into()).map_err(std::io::Error::other)?;
        Ok(HttpAnswer {
            status: status.as_u16(),
            body,
        })
    };
    tokio::time::timeout(PATIENCE, exchange)
        .await
        .unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
}
