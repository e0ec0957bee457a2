//! The settings of the gateway's process, as the command line and the environment give them.

use std::path::PathBuf;

use super::args::Args;
use crate::app::Settings;
use farebox::server::TlsFiles;

/// For `serve`, and for whatever judges them.
pub(super) fn settings(args: &Args) -> Settings {
    let files = |certificate: &Option<PathBuf>, key: &Option<PathBuf>| {
        let both = certificate.clone().zip(key.clone());
        both.map(|(certificate, key)| TlsFiles { certificate, key })
    };
    Settings {
        durability: args.durability.into(),
        allow_single: args.allow_single,
        state: args.state.clone(),
        admin_listen: Some(args.admin_listen),
        admin_token_file: args.admin_token_file.clone(),
        admin_hosts: args.admin_host.clone(),
        public_url: args.public_url.clone(),
        tls: files(&args.tls_cert, &args.tls_key),
        admin_tls: files(&args.admin_tls_cert, &args.admin_tls_key),
        anchors: args.anchors.clone(),
        operator: args.actor(),
        trusted_proxies: args.trusted_proxy.clone(),
        cors_origins: args.cors_origin.clone(),
        ..Settings::new(args.ledger.clone(), args.listen)
    }
}
