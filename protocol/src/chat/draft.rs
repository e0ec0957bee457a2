//! Chat completions answers made here.

use crate::Draft;

pub(super) fn write_answer(draft: &Draft) -> Vec<u8> {
    let _ = draft;
    Vec::new()
}

pub(super) fn write_frames(draft: &Draft) -> Vec<Vec<u8>> {
    let _ = draft;
    Vec::new()
}
