//! The bare pass-through: the cost of the same HTTP server and client when they only pass bytes on.

use std::net::SocketAddr;

use reqwest::Client;
use salvo::conn::tcp::TcpAcceptor;
use salvo::http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST};
use salvo::http::{ResBody, StatusCode};
use salvo::prelude::{Depot, FlowCtrl, Handler, Request, Response, Router, Server};
use tokio::net::TcpSocket;

/// The largest request body, as Farebox has it.
const LARGEST: usize = 32 * 1024 * 1024;

struct PassThrough {
    client: Client,
    upstream: String,
}

#[salvo::async_trait]
impl Handler for PassThrough {
    async fn handle(
        &self,
        request: &mut Request,
        _: &mut Depot,
        response: &mut Response,
        _: &mut FlowCtrl,
    ) {
        if let Err(fault) = self.pass(request, response).await {
            response.status_code(StatusCode::BAD_GATEWAY);
            response.body(fault);
        }
    }
}

impl PassThrough {
    async fn pass(&self, request: &mut Request, response: &mut Response) -> Result<(), String> {
        let body = request
            .payload_with_max_size(LARGEST)
            .await
            .map_err(|error| error.to_string())?
            .clone();
        let mut headers = request.headers().clone();
        for name in [HOST, CONNECTION, CONTENT_LENGTH] {
            headers.remove(name);
        }
        let url = format!("{}{}", self.upstream, request.uri().path());
        let answer = self
            .client
            .post(url)
            .headers(headers)
            .body(body)
            .send()
            .await
            .map_err(|error| error.to_string())?;
        response.status_code(answer.status());
        for name in [CONTENT_TYPE, CONTENT_LENGTH] {
            if let Some(value) = answer.headers().get(&name) {
                response.headers_mut().insert(name, value.clone());
            }
        }
        response.body(ResBody::stream(answer.bytes_stream()));
        Ok(())
    }
}

/// Serves until it is ended, on as many threads as there are CPUs for it.
pub(crate) fn run(address: SocketAddr, upstream: SocketAddr) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime
        .block_on(serve(address, upstream))
        .map_err(|error| format!("the pass-through: {error}"))
}

async fn serve(
    address: SocketAddr,
    upstream: SocketAddr,
) -> Result<(), Box<dyn std::error::Error>> {
    // The client is built without a TLS stack of its own, and wants one even for plain HTTP.
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| "two TLS stacks")?;
    let client = Client::builder()
        .no_proxy()
        .http1_only()
        .tcp_nodelay(true)
        .tls_certs_only([])
        .build()?;
    let socket = TcpSocket::new_v4()?;
    // Accepted connections inherit it.
    socket.set_nodelay(true)?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    let acceptor = TcpAcceptor::try_from(socket.listen(4_096)?)?;
    let router = Router::with_path("{**path}").goal(PassThrough {
        client,
        upstream: format!("http://{upstream}"),
    });
    Server::new(acceptor).try_serve(router).await?;
    Ok(())
}
