//! What the names of members and the types of parts say about their contents, in the words of every dialect; and what is said where
//! such contents are not sold.

use crate::fields::MEDIA;
use crate::{BadRequest, Remedy};

/// Whether values of this name are reasoning that only the provider can read.
pub(crate) fn is_sealed(name: &str) -> bool {
    matches!(name, "encrypted_content" | "data" | "signature")
}

/// What is audio or video.
const SOUNDS: &[&str] = &[
    "input_audio",
    "audio",
    "audio_url",
    "input_video",
    "video",
    "video_url",
    "media",
];

/// What is a file in the words of another dialect: servers that understand both fetch it, and nobody can tell what it is.
const FOREIGN: &[&str] = &[
    "fileData",
    "inlineData",
    "inline_data",
    "resource",
    "resource_link",
];

/// The name, if members or parts of this name are among the two.
pub(crate) fn unpriced_name(name: &str) -> Option<&'static str> {
    let mut names = SOUNDS.iter().chain(FOREIGN);
    names.find(|known| **known == name).copied()
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

/// The refusal of what has no price here, named `name`: of the whole that stands at `place`.
pub(crate) fn unpriced(place: &str, name: &str) -> BadRequest {
    if FOREIGN.contains(&name) {
        let message = format!(
            "`{name}` is refused: send a picture or a document in the words of this API, inline."
        );
        return BadRequest::at(place, message).with(Remedy::Inline);
    }
    let message = format!("`{name}` is refused: {MEDIA}. Leave it out.");
    BadRequest::at(place, message).with(Remedy::Without)
}

/// The refusal of a document that is given by its address.
pub(crate) fn by_url(name: &str) -> BadRequest {
    BadRequest::at(
        name,
        "documents by URL are refused: send the document itself as base64.",
    )
    .with(Remedy::Inline)
}
