//! The page's style and script, built in. Their URLs contain part of their hash, so that browsers may cache them forever.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// One file of the page.
#[derive(Debug)]
pub struct Asset {
    path: &'static str,
    pub(super) content_type: &'static str,
    pub(super) text: &'static str,
    version: LazyLock<String>,
}

/// The one style sheet of all pages.
pub static STYLE: Asset = Asset {
    path: "/dashboard/page.css",
    content_type: "text/css; charset=utf-8",
    text: include_str!("assets/page.css"),
    version: LazyLock::new(|| version(include_str!("assets/page.css"))),
};

/// The script. Everything except live updates works without it.
pub static SCRIPT: Asset = Asset {
    path: "/dashboard/page.js",
    content_type: "text/javascript; charset=utf-8",
    text: include_str!("assets/page.js"),
    version: LazyLock::new(|| version(include_str!("assets/page.js"))),
};

/// The page's icon, as a URL: a ticket.
pub(super) const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath fill='%230b6e4f' d='M1 4h14v3a1.5 1.5 0 0 0 0 3v3H1v-3a1.5 1.5 0 0 0 0-3z'/%3E%3Cpath stroke='%23fff' d='M10.5 5v7' stroke-dasharray='1.5'/%3E%3C/svg%3E";

impl Asset {
    /// The path of the icon.
    pub(super) fn url(&self) -> String {
        format!("{}?v={}", self.path, *self.version)
    }
}

fn version(text: &str) -> String {
    let mut version = hex::encode(Sha256::digest(text.as_bytes()));
    version.truncate(8);
    version
}
