//! What a target's refusal lets us change for one repeat, before anything of an answer has come: seals and pins that it rejects, a hint
//! that it does not know, and the path of another family that it names.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use farebox_protocol::{Family, UpstreamError, translate};

use super::UpstreamCall;
use crate::config::Target;

/// What targets have refused of one request that can be repeated otherwise: from then on `prepare` knows it.
#[derive(Debug, Default)]
pub struct Refusals {
    /// A target has rejected a seal: all sealed thinking is left out.
    pub seal: AtomicBool,
    /// A target has refused a field that is pinned: nothing is pinned.
    pub pin: OnceLock<RefusedPin>,
    /// A target has named the path of another family that it speaks: what has not been encoded is.
    pub path: AtomicBool,
    /// A target has refused a hint: it gets the request without.
    pub hint: AtomicBool,
}

/// How a target may be asked once more that has refused a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Otherwise {
    /// On the path that it has named.
    OnPath(Family),
    /// Without pinned fields.
    Unpinned,
    /// Without sealed thinking.
    Unsealed,
    /// Without the hint at this path.
    Without(String),
}

impl Otherwise {
    /// Why it is asked again.
    pub(super) const fn reason(&self) -> &'static str {
        match self {
            Self::OnPath(_) => "another path was named",
            Self::Unpinned => "a pinned field was rejected",
            Self::Unsealed => "a seal was rejected",
            Self::Without(_) => "a field was rejected",
        }
    }
}

/// A pinned field that a target has refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedPin {
    /// `provider/model`.
    pub target: String,
    /// The field.
    pub field: &'static str,
    /// The refusal names it as its parameter. Its text alone may quote whatever the customer wrote.
    pub named: bool,
}

impl UpstreamCall<'_> {
    /// Whether this is the first rejection of a seal, and the request may be repeated without any.
    pub(super) fn unseals(&self, error: &UpstreamError) -> bool {
        translate::rejects_seal(error)
            && self
                .refusals
                .is_some_and(|refusals| !refusals.seal.swap(true, Ordering::Relaxed))
    }

    /// Whether this is the first refusal of a pinned field, and the request may be repeated without any.
    pub(super) fn unpins(
        &self,
        error: &UpstreamError,
        target: &Target,
        pinned: &[&'static str],
    ) -> bool {
        let names = |field: &&&'static str| {
            error.param.as_deref() == Some(**field) || error.message.contains(**field)
        };
        let (Some(refusals), Some(field)) = (self.refusals, pinned.iter().find(names)) else {
            return false;
        };
        let refused = RefusedPin {
            target: target.name(),
            field,
            named: error.param.as_deref() == Some(*field),
        };
        refusals.pin.set(refused).is_ok()
    }

    /// The hint that the target says it does not know, if it was sent one and is the first to refuse any.
    pub(super) fn drops(&self, error: &UpstreamError, sent: &[Bytes]) -> Option<String> {
        let path = translate::refused_hint(self.family, error)?;
        let name = path.rsplit('.').next().unwrap_or(&path);
        let name = format!("\"{name}\"");
        let is_sent = sent
            .iter()
            .any(|piece| memchr::memmem::find(piece, name.as_bytes()).is_some());
        let refusals = self.refusals.filter(|_| is_sent)?;
        (!refusals.hint.swap(true, Ordering::Relaxed)).then_some(path)
    }

    /// The family on whose path the target says that it serves the request, if it may be asked there.
    pub(super) fn moves(&self, error: &UpstreamError, target: &Target) -> Option<Family> {
        let refusals = self.refusals.filter(|_| self.route.translate)?;
        let family = translate::named_path(self.family, error)?;
        if !target.provider.speaks_family(family) {
            return None;
        }
        refusals.path.store(true, Ordering::Relaxed);
        Some(family)
    }
}
