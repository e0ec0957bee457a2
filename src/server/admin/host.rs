//! Checks the `Host` of admin requests, against DNS rebinding: a web page can point its own name at 127.0.0.1 and read what is
//! served there. Its browser then sends that name as `Host` and gets a 421.

use std::net::IpAddr;
use std::sync::Arc;

use salvo::http::StatusCode;
use salvo::http::header::HOST;
use salvo::prelude::{Depot, FlowCtrl, Request, Response, handler};

use super::{Admin, text};
use crate::server::connections;

/// The middleware around every path: checks the name, and marks the connection as busy.
pub(super) struct Arrive {
    admin: Arc<Admin>,
}

#[handler]
impl Arrive {
    pub(super) fn new(admin: Arc<Admin>) -> Self {
        Self { admin }
    }

    async fn handle(
        &self,
        req: &mut Request,
        depot: &mut Depot,
        res: &mut Response,
        ctrl: &mut FlowCtrl,
    ) {
        let busy = connections::begin_of_operator(&self.admin.connections, req, depot);
        let sent = req
            .headers()
            .get_all(HOST)
            .into_iter()
            .map(|value| value.to_str().unwrap_or_default());
        let authority = req.uri().authority().map(|authority| authority.as_str());
        // A request without any name comes from no browser: these send one always.
        if sent
            .chain(authority)
            .all(|host| is_ours(host, &self.admin.hosts))
        {
            ctrl.call_next(req, depot, res).await;
            connections::hold(res, busy);
            return;
        }
        ctrl.skip_rest();
        text(
            res,
            StatusCode::MISDIRECTED_REQUEST,
            "this listener answers only to IP addresses and localhost; allow another name with --admin-host NAME\n",
        );
    }
}

/// Whether a `Host`, with or without a port, is an address, `localhost`, or a name that the operator listed.
fn is_ours(host: &str, listed: &[String]) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, port)) if port.is_empty() || is_port(port) => name,
            _ => return false,
        },
        None => match host.split_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            Some(_) => return false,
            None => host,
        },
    };
    let name = name.trim_end_matches('.');
    name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || listed
            .iter()
            .any(|listed| listed.eq_ignore_ascii_case(name))
}

fn is_port(text: &str) -> bool {
    text.strip_prefix(':')
        .is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_localhost_and_listed_names_are_ours() {
        let listed = ["farebox.internal".to_owned()];
        for host in [
            "127.0.0.1",
            "127.0.0.1:9090",
            "[::1]:9090",
            "[::1]",
            "localhost",
            "LocalHost:9090",
            "Farebox.Internal:1",
        ] {
            assert!(is_ours(host, &listed), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:9090",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
            "::1:x",
            "[::1]x",
        ] {
            assert!(!is_ours(host, &listed), "{host}");
        }
    }
}
