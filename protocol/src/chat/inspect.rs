//! What a chat request asks for.

use crate::{BadRequest, Inspection};

pub(super) fn inspect(body: &[u8]) -> Result<Inspection, BadRequest> {
    let _ = body;
    Err(BadRequest { message: String::new(), param: None, code: None })
}
