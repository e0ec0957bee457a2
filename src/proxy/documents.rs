//! Reads the documents in a request for their page count and text, before anything is held for them.
//!
//! Runs aside, customer by customer, because a document may take half a second and 400 MB. A document that cannot be read costs the
//! whole context.

use bytes::Bytes;
use farebox_protocol::{Inspection, document_bytes};

use super::Failure;
use crate::metering::pdf;
use crate::turns::Work;

/// Counts the tokens of every document in a customer's request.
///
/// # Errors
/// [`Failure::RateLimited`] when the customer's turn does not come.
pub(super) async fn read(
    work: &mut Work,
    body: &Bytes,
    seen: &mut Inspection,
) -> Result<(), Failure> {
    for document in &mut seen.content.documents {
        let (body, place) = (body.clone(), document.place.clone());
        let counting = work.aside(move || pdf::tokens(&document_bytes(&body, &place)?));
        document.tokens = counting.await?;
    }
    Ok(())
}
