//! What a target may add to its answers: members that the family does not have pass if the provider's `pass_answer` names them, or if
//! the exit for texts would leave them as they are.

use std::fmt;
use std::sync::{Arc, Mutex};

use farebox_ledger::lock;
use farebox_protocol::Additions;

use super::client::Pool;
use super::secret_forms::SecretForms;
use super::{UpstreamCall, redact};
use crate::config::Target;

/// A stream repeats its members, so some that were found harmless are kept, if they are short.
const MOST_KEPT: usize = 16;
const LONGEST_KEPT: usize = 128;

/// What one target may add to one answer.
pub(super) struct TargetAdditions {
    /// What customers call the model.
    slug: String,
    target: Target,
    secrets: SecretForms,
    harmless: Mutex<Vec<Box<str>>>,
}

impl TargetAdditions {
    /// For a stream, which is read after its request.
    pub(super) fn of(call: &UpstreamCall<'_>, target: &Target, pool: &Pool) -> Arc<dyn Additions> {
        Arc::new(Self::new(&call.route.slug, target, &pool.secrets))
    }

    pub(super) fn new(slug: &str, target: &Target, secrets: &SecretForms) -> Self {
        Self {
            slug: slug.to_owned(),
            target: target.clone(),
            secrets: secrets.clone(),
            harmless: Mutex::default(),
        }
    }
}

impl fmt::Debug for TargetAdditions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "TargetAdditions({})", self.target.name())
    }
}

impl Additions for TargetAdditions {
    fn allows(&self, name: &str) -> bool {
        let passes = &self.target.provider.pass_answer;
        passes.iter().any(|passes| passes == name)
    }

    fn is_harmless(&self, member: &str) -> bool {
        let mut kept = lock(&self.harmless);
        if kept.iter().any(|known| &**known == member) {
            return true;
        }
        let harmless = !redact::tells(member, &self.slug, &self.target, &self.secrets);
        if harmless && member.len() <= LONGEST_KEPT && kept.len() < MOST_KEPT {
            kept.push(member.into());
        }
        harmless
    }
}
