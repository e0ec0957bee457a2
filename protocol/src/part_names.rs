//! What the names of members and the types of parts say about their contents, in the words of every dialect; and what is said where
//! such contents are not sold.

use crate::fields::MEDIA;
use crate::{BadRequest, Remedy};

/// Whether values of this name are reasoning that only the provider can read.
pub(crate) fn is_sealed(name: &str) -> bool {
    matches!(name, "encrypted_content" | "data" | "signature")
}

/// Whether members or parts of this name are audio or video, or files of any kind in the words of other dialects, of which nobody
/// can tell what they are.
pub(crate) fn is_unpriced(name: &str) -> bool {
    matches!(
        name,
        "input_audio" | "audio" | "audio_url" | "input_video" | "video" | "video_url" | "media"
    ) || is_foreign_file(name)
}

/// Whether a member or part of this name is a file in the words of another dialect: servers that understand both fetch it.
pub(crate) fn is_foreign_file(name: &str) -> bool {
    matches!(
        name,
        "fileData" | "inlineData" | "inline_data" | "resource" | "resource_link"
    )
}

/// Whether a member of this name is an address that servers fetch: `file_url`, `file_uri`, `fileUri`.
pub(crate) fn is_address(name: &str) -> bool {
    matches!(name, "uri" | "fileUri" | "fileUrl")
        || name.ends_with("_url")
        || name.ends_with("_uri")
}

/// Whether parts of this type are text.
pub(crate) fn is_text(kind: &str) -> bool {
    matches!(kind, "text" | "input_text" | "output_text" | "message")
}

/// Whether parts of this type are pictures.
pub(crate) fn is_picture(kind: &str) -> bool {
    matches!(kind, "image" | "image_url" | "input_image")
}

/// Items of responses that have the model write more than it shows: one sets another effort for what follows, one asks for a
/// compacted conversation.
pub(crate) fn hides_output(kind: &str) -> bool {
    matches!(kind, "configuration_update" | "compaction_trigger")
}

/// The refusal of a part or member that has no price here.
pub(crate) fn unpriced(name: &str) -> BadRequest {
    if is_foreign_file(name) {
        let message = format!(
            "`{name}` is refused: send a picture or a document in the words of this API, inline."
        );
        return BadRequest::at(name, message).with(Remedy::Inline);
    }
    BadRequest::at(name, format!("`{name}` is refused: {MEDIA}.")).with(Remedy::Without)
}

/// The refusal of a document that is given by its address.
pub(crate) fn by_url(name: &str) -> BadRequest {
    BadRequest::at(
        name,
        "documents by URL are refused: send the document itself as base64.",
    )
    .with(Remedy::Inline)
}
