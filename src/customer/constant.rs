//! A document that stays the same until it is made anew: sent with its ETag, and not sent again to whoever has it.

use bytes::Bytes;
use salvo::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use salvo::http::{HeaderMap, HeaderValue, StatusCode};
use salvo::prelude::Response;
use sha2::{Digest, Sha256};

/// A text with its type and ETag.
#[derive(Debug, Clone)]
pub struct ConstantDocument {
    content_type: &'static str,
    text: Bytes,
    etag: HeaderValue,
}

impl ConstantDocument {
    /// A document of this type.
    #[must_use]
    pub fn new(content_type: &'static str, text: String) -> Self {
        let mut hash = hex::encode(Sha256::digest(text.as_bytes()));
        hash.truncate(16);
        let etag = HeaderValue::from_str(&format!("\"{hash}\""));
        Self {
            content_type,
            text: text.into(),
            etag: etag.unwrap_or(HeaderValue::from_static("\"\"")),
        }
    }

    /// Writes it, or that the caller has it already.
    pub fn answer(&self, asked: &HeaderMap, res: &mut Response) {
        let headers = res.headers_mut();
        headers.insert(ETAG, self.etag.clone());
        // It may be kept, and is asked for again: it changes with the files.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        let is_ours = |sent: &HeaderValue| {
            let sent = sent.to_str().unwrap_or_default();
            let mut tags = sent
                .split(',')
                .map(|tag| tag.trim().trim_start_matches("W/"));
            tags.any(|tag| tag == "*" || self.etag == tag)
        };
        if asked.get_all(IF_NONE_MATCH).into_iter().any(is_ours) {
            res.status_code(StatusCode::NOT_MODIFIED);
            return;
        }
        let headers = res.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        res.body(self.text.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_it_is_not_sent_it_again() {
        let constant = ConstantDocument::new("text/plain", "words".to_owned());
        let mut asked = HeaderMap::new();
        let mut first = Response::new();
        constant.answer(&asked, &mut first);
        assert!(!first.body.is_none() && first.status_code.is_none());
        let tag = first.headers().get(ETAG).cloned().unwrap();
        let weak = format!("\"other\", W/{}", tag.to_str().unwrap());
        asked.insert(IF_NONE_MATCH, weak.parse().unwrap());
        let mut again = Response::new();
        constant.answer(&asked, &mut again);
        assert_eq!(again.status_code, Some(StatusCode::NOT_MODIFIED));
        assert!(again.body.is_none());
        let other = ConstantDocument::new("text/plain", "other words".to_owned());
        let mut changed = Response::new();
        other.answer(&asked, &mut changed);
        assert!(!changed.body.is_none());
    }
}
