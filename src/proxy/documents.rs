//! Reads the documents in a request for their page count and text, before anything is held for them.
//!
//! Runs on blocking threads, a few at a time, because a document may take half a second. A document that cannot be read costs the
//! whole context.

use bytes::Bytes;
use farebox_protocol::{Inspection, document_bytes};
use tokio::sync::Semaphore;

use crate::clock;
use crate::metering::pdf;

/// Documents that are read at the same time, over all requests.
static READERS: Semaphore = Semaphore::const_new(2);

/// Counts the tokens of every document.
pub(super) async fn read(body: &Bytes, seen: &mut Inspection) {
    for document in &mut seen.content.documents {
        let Ok(_reader) = READERS.acquire().await else { return };
        let (body, place) = (body.clone(), document.place.clone());
        let counted = tokio::task::spawn_blocking(move || pdf::tokens(&document_bytes(&body, &place)?, clock::seed())).await;
        document.tokens = counted.ok().flatten();
    }
}
