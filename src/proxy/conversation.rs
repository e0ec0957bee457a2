//! Which conversation a request belongs to: by the caller's own name for it, else by what each of its turns repeats.
//!
//! Only a hash is made of it, with the customer and the slug, so that nobody shares anything with another customer and nothing that
//! a caller sends is kept. Looked at only where a request may go to several places.

use std::hash::Hasher;
use std::time::Duration;

use bytes::Bytes;
use farebox_ledger::CustomerId;
use farebox_protocol::Inspection;
use highway::{HighwayHash, HighwayHasher, Key};

use super::Failure;
use super::asked::lifetimes;
use crate::clock;
use crate::config::Model;
use crate::metering::LEAST_CACHED;
use crate::turns::Work;
use crate::upstream::Conversation;

/// The header in which clients name their session. It is not sent upstream.
pub const SESSION_HEADER: &str = "x-session-id";
/// More than this is hashed off the request's thread.
const LARGE: usize = 256 * 1024;
/// The first digits of π. Not secret: every gateway of a fleet, and of the next version, must find the same.
const DIGITS: Key = Key([
    0x243f_6a88_85a3_08d3,
    0x1319_8a2e_0370_7344,
    0xa409_3822_299f_31d0,
    0x082e_fa98_ec4e_6c89,
]);

/// Whose request it is, and what says to which conversation it belongs.
pub(super) struct ConversationOf<'a> {
    pub(super) customer: CustomerId,
    pub(super) model: &'a Model,
    /// The session that its header names.
    pub(super) session: Option<&'a Bytes>,
    pub(super) body: &'a Bytes,
    pub(super) seen: &'a Inspection,
    /// How large its input is estimated.
    pub(super) tokens: u64,
}

impl ConversationOf<'_> {
    /// What decides where the request goes; nothing where it can go to one place only.
    ///
    /// # Errors
    /// There is much to hash, and the customer's turn does not come.
    pub(super) async fn find(&self, work: &mut Work) -> Result<Option<Conversation>, Failure> {
        if !self.model.route.has_a_choice() {
            return Ok(None);
        }
        let whole = match self.session.filter(|session| !session.is_empty()) {
            Some(session) => self.hash(|hash| hash.write(session)),
            None => self.hash_body(work).await?,
        };
        Ok(Some(Conversation {
            whole,
            request: clock::seed(),
            cached_for: match self.tokens {
                0..LEAST_CACHED => Duration::ZERO,
                _ => lifetimes(self.seen).longest(),
            },
        }))
    }

    async fn hash_body(&self, work: &mut Work) -> Result<u64, Failure> {
        let places = &self.seen.places;
        let (conversation, talk, body) = (&places.conversation, &places.talk, self.body);
        if conversation.most_bytes(talk) <= LARGE {
            return Ok(self.hash(|hash| conversation.hash(talk, body, hash)));
        }
        let (conversation, talk, body) = (conversation.clone(), talk.clone(), body.clone());
        let mut hash = self.begun();
        let hashing = work.aside(move || {
            conversation.hash(&talk, &body, &mut hash);
            hash.finalize64()
        });
        Ok(hashing.await?)
    }

    fn hash(&self, rest: impl FnOnce(&mut HighwayHasher)) -> u64 {
        let mut hash = self.begun();
        rest(&mut hash);
        hash.finalize64()
    }

    /// The hash of customer and slug, to which the conversation is added.
    fn begun(&self) -> HighwayHasher {
        let mut hash = HighwayHasher::new(DIGITS);
        hash.append(&self.customer.to_i64().to_le_bytes());
        hash.append(self.model.slug.as_bytes());
        // No slug has it.
        hash.append(&[0]);
        hash
    }
}
