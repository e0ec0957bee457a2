//! Which conversation a request belongs to: by the caller's own name for it, else by what each of its turns repeats.
//!
//! Only a hash is made of it, with the customer and the slug, so that nobody shares anything with another customer and nothing that
//! a caller sends is kept. Looked at only where a request may go to several places.

use std::time::Duration;

use bytes::Bytes;
use farebox_ledger::CustomerId;
use farebox_protocol::{ConversationPlaces, Inspection, Talk};
use xxhash_rust::xxh64::xxh64;

use super::Failure;
use super::prompt::lifetimes;
use crate::config::Model;
use crate::metering::LEAST_CACHED;
use crate::turns::Work;
use crate::upstream::Conversation;

/// The header in which clients name their session. It is not sent upstream.
pub const SESSION_HEADER: &str = "x-session-id";
/// More than this is hashed off the request's thread.
const LARGE: usize = 256 * 1024;

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
    /// A number that no other request has.
    pub(super) request: u64,
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
            Some(session) => xxh64(session, self.seed()),
            None => self.hash_body(work).await?,
        };
        Ok(Some(Conversation {
            whole,
            request: self.request,
            cached_for: match self.tokens {
                0..LEAST_CACHED => Duration::ZERO,
                _ => lifetimes(self.seen).longest(),
            },
        }))
    }

    async fn hash_body(&self, work: &mut Work) -> Result<u64, Failure> {
        let places = &self.seen.places;
        let (conversation, talk, body) = (&places.conversation, &places.talk, self.body);
        let seed = self.seed();
        if body.len() <= LARGE || conversation.most_bytes(talk) <= LARGE {
            return Ok(hash(conversation, talk, body, seed));
        }
        let (conversation, talk, body) = (conversation.clone(), talk.clone(), body.clone());
        let hashing = work.aside(move || hash(&conversation, &talk, &body, seed));
        Ok(hashing.await?)
    }

    /// The hash of customer and slug, on which the conversation's is built.
    fn seed(&self) -> u64 {
        // Without a secret, and of a published kind: every gateway of a fleet, and of the next version, must find the same. Whoever makes two
        // conversations with one hash only sends both to the same account, because its customer is the seed.
        let customer = self.customer.to_i64().cast_unsigned();
        xxh64(self.model.slug.as_bytes(), customer)
    }
}

/// Each part's hash is the next one's seed.
fn hash(conversation: &ConversationPlaces, talk: &Talk, body: &[u8], seed: u64) -> u64 {
    let parts = conversation.parts(talk, body);
    let said = parts.iter().filter(|part| !part.is_empty());
    said.fold(seed, |seed, part| xxh64(part, seed))
}
