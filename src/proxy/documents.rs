//! Reads the documents in a request for their page count and text, before anything is held for them.
//!
//! Runs on blocking threads, a few at a time and key by key, because a document may take half a second and 400 MB. A document that
//! cannot be read costs the whole context.

use bytes::Bytes;
use farebox_protocol::{Inspection, document_bytes};

use crate::byte_room::Holder;
use crate::clock;
use crate::metering::pdf;
use crate::turns::Turns;

/// Documents that are read at the same time, over all requests. Unit tests share them, as they do the tokenizers.
static READERS: Turns = Turns::new(if cfg!(test) { usize::MAX } else { 2 });

/// Counts the tokens of every document in a key's request.
pub(super) async fn read(holder: Holder, body: &Bytes, seen: &mut Inspection) {
    for document in &mut seen.content.documents {
        let (body, place) = (body.clone(), document.place.clone());
        let counted = READERS.run(holder, move || {
            pdf::tokens(&document_bytes(&body, &place)?, clock::seed())
        });
        document.tokens = counted.await.flatten();
    }
}
