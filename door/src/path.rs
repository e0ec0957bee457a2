//! What a path says of itself before it can be served: how it is called, which body it takes, and who calls it.

/// Nothing larger is read into a tree of values.
// Values in memory may take a hundred times the bytes of their text.
pub const LARGEST_TREE: usize = 64 * 1024;
/// The largest form, and the largest document of an act that is as small as one.
pub const FORM: usize = 4 * 1024;

/// One path of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoorPath {
    /// How it is called.
    pub method: Method,
    /// With a leading slash; parameters in braces.
    pub path: &'static str,
    /// The body that it takes.
    pub body: BodyRule,
    /// Who calls it.
    pub caller: PathCaller,
}

impl DoorPath {
    /// A path that takes this body.
    #[must_use]
    pub const fn new(
        method: Method,
        path: &'static str,
        body: BodyRule,
        caller: PathCaller,
    ) -> Self {
        Self {
            method,
            path,
            body,
            caller,
        }
    }

    /// A `GET` without a body.
    #[must_use]
    pub const fn read(path: &'static str, caller: PathCaller) -> Self {
        Self::new(Method::Get, path, BodyRule::Nothing, caller)
    }
}

/// How a path is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// A read; takes HEAD, too.
    Get,
    /// Probes whether the server is up.
    Head,
    /// An action.
    Post,
    /// A change of what is there.
    Patch,
    /// An end.
    Delete,
    /// The handler distinguishes them itself.
    Any,
}

impl Method {
    /// Its name in HTTP.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Any => "*",
        }
    }
}

/// The body that a path takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyRule {
    /// None. What is sent all the same is dropped.
    Nothing,
    /// A form of at most [`FORM`] bytes, urlencoded.
    Form,
    /// JSON of at most this many bytes, which may be read into a tree: [`BodyRule::document`] makes it.
    Document(DocumentSize),
    /// At most this many bytes of JSON that is never read into a tree.
    Json(usize),
}

/// The size of a document, which is at most [`LARGEST_TREE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentSize(usize);

impl BodyRule {
    /// JSON of at most so many bytes, and never more than [`LARGEST_TREE`].
    #[must_use]
    pub const fn document(largest: usize) -> Self {
        Self::Document(DocumentSize(if largest > LARGEST_TREE {
            LARGEST_TREE
        } else {
            largest
        }))
    }

    /// The most bytes.
    #[must_use]
    pub const fn largest(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Form => FORM,
            Self::Document(DocumentSize(largest)) | Self::Json(largest) => largest,
        }
    }

    /// Whether this content type is the one expected. What curl says of any text that it is given counts as JSON, as none does.
    pub(crate) fn takes(self, content_type: Option<&str>) -> bool {
        let kind = content_type.map(|kind| kind.split(';').next().unwrap_or_default().trim());
        let is = |known: &str| kind.is_some_and(|kind| kind.eq_ignore_ascii_case(known));
        let is_json = || {
            let end = kind.and_then(|kind| kind.as_bytes().last_chunk::<5>());
            is("application/json") || end.is_some_and(|end| end.eq_ignore_ascii_case(b"+json"))
        };
        match self {
            Self::Nothing => false,
            Self::Form => is(URLENCODED),
            Self::Document(_) | Self::Json(_) => {
                kind.is_none_or(str::is_empty) || is(URLENCODED) || is("text/plain") || is_json()
            }
        }
    }

    /// What to send instead of another content type.
    pub(crate) const fn expected(self) -> &'static str {
        match self {
            Self::Nothing => "no body",
            Self::Form => URLENCODED,
            Self::Document(_) | Self::Json(_) => "application/json",
        }
    }
}

const URLENCODED: &str = "application/x-www-form-urlencoded";

/// Who calls a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathCaller {
    /// Whoever shows a credential, which the handler judges before it reads the body.
    Known,
    /// Anybody: within the budget of strangers, before any work.
    Anybody,
    /// Whoever asks whether the server is well: as anybody, with a budget that nothing else uses.
    Monitor,
    /// A service that signs its body. Nobody is refused before the signature is checked: what is beyond the budget waits.
    Signer,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_takes_the_type_that_it_expects() {
        let json = BodyRule::Json(9);
        for kind in [
            None,
            Some("application/json"),
            Some("Application/JSON; charset=utf-8"),
            Some("application/vnd.api+json"),
            Some("application/x-www-form-urlencoded"),
            Some("text/plain;charset=UTF-8"),
        ] {
            assert!(json.takes(kind), "{kind:?}");
        }
        for kind in [
            "multipart/form-data; boundary=x",
            "application/octet-stream",
        ] {
            assert!(!json.takes(Some(kind)) && !BodyRule::Form.takes(Some(kind)));
        }
        assert!(BodyRule::Form.takes(Some("application/x-www-form-urlencoded; charset=utf-8")));
        assert!(!BodyRule::Form.takes(None) && !BodyRule::Form.takes(Some("application/json")));
        assert!(!BodyRule::Nothing.takes(None));
    }

    #[test]
    fn nothing_above_64_kib_becomes_a_tree() {
        assert_eq!(BodyRule::document(1 << 30).largest(), LARGEST_TREE);
        assert_eq!(BodyRule::document(FORM).largest(), FORM);
    }
}
