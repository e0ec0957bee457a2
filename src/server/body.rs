//! Who pays for the body of a key's request: its share of the memory for all bodies in flight, and the key's money.
//!
//! Rows of docs/interface.md: `body_of_more_than_32_mib`.

use std::sync::Arc;

use bytes::Bytes;
use farebox_door::byte_room::{ByteRoom, ByteShare};
use farebox_door::{BodyPayer, UnreadBody};
use farebox_ledger::{Amount, Key};

use super::funds::Funds;
use crate::proxy::{Failure, MOST_WAITING_BYTES, holder};

/// A body and its share of the memory for all bodies in flight.
pub(super) struct RequestBody {
    pub(super) bytes: Bytes,
    pub(super) room: ByteShare,
}

/// A key as far as it pays for a body.
struct KeyPayer {
    share: ByteShare,
    funds: Option<Funds>,
}

impl BodyPayer for KeyPayer {
    type Refusal = Failure;

    fn announced(&mut self, bytes: usize) -> Result<(), Failure> {
        // Memory is checked first: when it is full, the answer is 503 for every body.
        reserve(&mut self.share, 1)?;
        self.share.shrink_to(0);
        self.affords(bytes)
    }

    fn arrived(&mut self, bytes: usize) -> Result<(), Failure> {
        self.affords(bytes)?;
        reserve(&mut self.share, bytes)
    }
}

impl KeyPayer {
    fn affords(&self, bytes: usize) -> Result<(), Failure> {
        let funds = self.funds.as_ref();
        funds.map_or(Ok(()), |funds| funds.cover(bytes))
    }
}

/// Reads the whole body of a key's request.
///
/// # Errors
/// 413 over the limit, 415 for another content type, 503 when too much is in flight, 429 for more than the key can pay for, 400 when
/// it stops arriving or arrives too slowly.
pub(super) async fn read(
    body: UnreadBody,
    room: &Arc<ByteRoom>,
    key: &Key,
    funds: Option<Funds>,
) -> Result<RequestBody, Failure> {
    let most = if key.customer.available("") > Amount::ZERO {
        usize::MAX
    } else {
        MOST_WAITING_BYTES
    };
    let share = room.share(holder(key.customer.id), most);
    let mut payer = KeyPayer { share, funds };
    let bytes = body.read(&mut payer).await?;
    let room = payer.share;
    Ok(RequestBody { bytes, room })
}

pub(super) fn reserve(share: &mut ByteShare, bytes: usize) -> Result<(), Failure> {
    if share.grow_to(bytes) {
        Ok(())
    } else {
        Err(Failure::Overloaded)
    }
}
