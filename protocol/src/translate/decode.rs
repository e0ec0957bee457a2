//! Shared by the decoders of requests: shapes that several families write alike.

use std::borrow::Cow;

use super::fates::{FateRow, judge, unsupported};
use super::losses::Losses;
use super::neutral::{AnswerFormat, Cache, MediaSource, NeutralBlock, NeutralPrompt};
use super::text::Escaped;
use super::tree::JsonNode;
use crate::json::{Cursor, Kind};
use crate::{BadRequest, Family, Remedy, ServiceTier};

/// A request on its way into a [`NeutralPrompt`].
pub(crate) struct Decoding<'l> {
    pub(crate) target: Family,
    /// The losses so far.
    pub(crate) losses: &'l mut Losses,
}

impl Decoding<'_> {
    /// Walks the top level: each field the table hands over goes to `take`.
    pub(crate) fn fields<'a>(
        &mut self,
        body: &'a [u8],
        table: &[FateRow],
        mut take: impl FnMut(
            &mut Self,
            &str,
            &JsonNode<'a>,
            &mut NeutralPrompt<'a>,
        ) -> Result<(), BadRequest>,
    ) -> Result<NeutralPrompt<'a>, BadRequest> {
        let tree = JsonNode::of_request(body)?;
        if tree.kind != Kind::Object {
            return Err(BadRequest::new("The request body must be one JSON object."));
        }
        let mut prompt = NeutralPrompt::default();
        for (name, value) in tree.members() {
            if judge(table, self.target, name, value, self.losses)? {
                take(self, name, value, &mut prompt)?;
            }
        }
        Ok(prompt)
    }

    /// Takes a field that families write alike.
    pub(crate) fn alike<'a>(
        &mut self,
        name: &str,
        value: &JsonNode<'a>,
        prompt: &mut NeutralPrompt<'a>,
    ) {
        match name {
            "temperature" => prompt.temperature = value.number(),
            "top_p" => prompt.top_p = value.number(),
            "top_k" => prompt.top_k = value.number(),
            "stream" => prompt.stream = value.is_true(),
            "parallel_tool_calls" => prompt.parallel = value.flag(),
            "prompt_cache_key" => prompt.cache_key = value.text(),
            "safety_identifier" => prompt.user = value.plain().or(prompt.user.take()),
            // The older name for the same: the newer one wins, whichever comes first.
            "user" => prompt.user = prompt.user.take().or(value.plain()),
            "service_tier" => match value.word() {
                "auto" => prompt.standard_tier = Some(false),
                "default" => prompt.standard_tier = Some(true),
                "flex" => prompt.tier = ServiceTier::Flex,
                "priority" | "fast" => prompt.tier = ServiceTier::Fast,
                "" => {}
                _ => self.drop(name),
            },
            _ => {}
        }
    }

    /// Collects losses.
    pub(crate) fn drop(&mut self, field: &str) {
        self.losses.add(field, "dropped");
    }
}

/// The refusal of a value of the wrong shape.
pub(crate) fn wrong(param: &str, wanted: &str) -> BadRequest {
    BadRequest::at(param, format!("`{param}` must be {wanted}."))
}

/// The parts of a content: text, or a list, whose members `part` takes; in words what else is wrong.
pub(crate) fn parts<'a>(
    content: &JsonNode<'a>,
    path: &str,
    wanted: &str,
    mut part: impl FnMut(&JsonNode<'a>, &str, &mut Vec<NeutralBlock<'a>>) -> Result<(), BadRequest>,
) -> Result<Vec<NeutralBlock<'a>>, BadRequest> {
    let mut out = Vec::new();
    match content.kind {
        Kind::String => out.extend(content.text().map(NeutralBlock::text)),
        Kind::Null => {}
        Kind::Array => {
            for (at, node) in content.elements().enumerate() {
                part(node, &format!("{path}[{at}]"), &mut out)?;
            }
        }
        _ => return Err(wrong(path, wanted)),
    }
    Ok(out)
}

/// A part that is text, in this member.
pub(crate) fn text<'a>(part: &JsonNode<'a>, member: &str) -> NeutralBlock<'a> {
    NeutralBlock::Text {
        text: part.get(member).text().unwrap_or_default(),
        cache: cache(part),
    }
}

/// The form that an answer must have, of chat or responses: `described` has the schema, at this path.
pub(crate) fn format<'a>(
    format: &JsonNode<'a>,
    described: &JsonNode<'a>,
    path: &str,
) -> Result<Option<AnswerFormat<'a>>, BadRequest> {
    match format.get("type").word() {
        "json_object" => Ok(Some(AnswerFormat::Json)),
        "json_schema" => {
            let schema = described.get("schema").object();
            Ok(Some(AnswerFormat::Schema {
                name: described.get("name").text(),
                description: described.get("description").text(),
                schema: schema.ok_or_else(|| wrong(path, "a JSON schema"))?,
                strict: described.get("strict").flag(),
            }))
        }
        _ => Ok(None),
    }
}

/// A mark of the prompt cache in the native form.
pub(crate) fn cache(node: &JsonNode<'_>) -> Option<Cache> {
    let mark = node.get("cache_control");
    if mark.kind == Kind::Object {
        // Any other lifetime counts as the long one, which is the dearer: a new word must not be sold at the price of the short
        // one.
        return Some(if matches!(mark.get("ttl").word(), "" | "5m") {
            Cache::Short
        } else {
            Cache::Long
        });
    }
    // Chat's own form of the mark has no lifetime.
    (node.get("prompt_cache_breakpoint").kind == Kind::Object).then_some(Cache::Short)
}

/// Whether a URL is inline data or an address. Takes the text in escaped form.
fn source(url: &str) -> MediaSource<'_> {
    let inline = url
        .get(..5)
        // Schemes have no case. A missed one would be sent on as an address of megabytes.
        .filter(|scheme| scheme.eq_ignore_ascii_case("data:"))
        .and_then(|_| url.get(5..)?.split_once(','));
    match inline {
        Some((head, data)) => {
            let media = head
                .split(';')
                .next()
                .unwrap_or_default()
                .replace("\\/", "/");
            MediaSource::Base64 {
                media: Escaped::raw(media),
                data: Escaped::raw(data),
            }
        }
        None => MediaSource::Url(Escaped::raw(url)),
    }
}

/// A picture of chat or responses: an address, or an object that contains one.
pub(crate) fn picture<'a>(part: &JsonNode<'a>, path: &str) -> Result<NeutralBlock<'a>, BadRequest> {
    let place = part.get("image_url");
    let (url, detail) = if place.kind == Kind::Object {
        (place.get("url"), place.get("detail"))
    } else {
        (place, part.get("detail"))
    };
    if url.kind != Kind::String {
        return Err(file_id(path));
    }
    Ok(NeutralBlock::Image {
        source: source(url.word()),
        detail: detail.text(),
        cache: cache(part),
    })
}

/// A document of chat or responses; `file` is the object that contains it.
pub(crate) fn file<'a>(
    file: &JsonNode<'a>,
    part: &JsonNode<'a>,
    path: &str,
) -> Result<NeutralBlock<'a>, BadRequest> {
    if let Some(url) = file.get("file_url").text() {
        return Ok(NeutralBlock::File {
            source: MediaSource::Url(url),
            name: file.get("filename").text(),
            cache: cache(part),
        });
    }
    let data = file.get("file_data");
    if data.kind != Kind::String {
        return Err(file_id(path));
    }
    let source = match source(data.word()) {
        // Some clients send bare base64, nearly always of a PDF; a vendor checks what it gets.
        MediaSource::Url(bare) => MediaSource::Base64 {
            media: Escaped::raw("application/pdf"),
            data: bare,
        },
        inline => inline,
    };
    Ok(NeutralBlock::File {
        source,
        name: file.get("filename").text(),
        cache: cache(part),
    })
}

fn file_id(path: &str) -> BadRequest {
    unsupported(
        path,
        format!(
            "`{path}` must carry its data: stored files are not known here. Send it inline, as a data URL."
        ),
    )
    .with(Remedy::Inline)
}

/// The refusal of a part that is unknown, or has no equivalent in the target's family.
pub(crate) fn no_equal(path: &str, kind: &str, target: Family) -> BadRequest {
    // The customer's own word in a message: short, and without control characters.
    let kind: String = kind.chars().filter(|c| !c.is_control()).take(40).collect();
    unsupported(
        path,
        format!(
            "`{path}`: parts of type `{kind}` cannot be sent to this model, which is served through the {target} family. Leave it out."
        ),
    )
}

/// The refusal of a tool that is a provider's own and has no equivalent.
pub(crate) fn no_server_tool(path: &str, kind: &str) -> BadRequest {
    let kind: String = kind.chars().filter(|c| !c.is_control()).take(40).collect();
    unsupported(
        path,
        format!(
            "`{path}`: the tool `{kind}` is one that only its own provider has, and this model's is another. Leave it out, or offer a tool of your own."
        ),
    )
}

/// Refuses a request of whose tools the first that is `gone`, at its place in the list, and all others are a provider's own.
pub(crate) fn some_left(
    prompt: &NeutralPrompt<'_>,
    gone: Option<(usize, &str)>,
) -> Result<(), BadRequest> {
    match gone {
        Some((at, kind)) if prompt.tools.is_empty() => {
            Err(no_server_tool(&format!("tools[{at}]"), kind))
        }
        _ => Ok(()),
    }
}

/// The schema of a tool, made an object schema whatever was sent.
pub(crate) fn object_schema<'a>(schema: &JsonNode<'a>) -> Option<Cow<'a, str>> {
    let raw = schema.object()?;
    let (mut typed, mut listed, mut combined) = (false, false, false);
    let mut cursor = Cursor::new(raw.as_bytes()).ok()?;
    let mut walk = cursor.enter_object().ok()?;
    while let Some(key) = cursor.member(&mut walk).ok()? {
        let given = cursor.skip().ok()?.kind != Kind::Null;
        match key.name.as_ref() {
            "type" => typed = given,
            "properties" => listed = given,
            "anyOf" | "oneOf" | "allOf" | "$ref" => combined |= given,
            _ => {}
        }
    }
    // Unchanged bytes keep the vendor's prompt cache.
    if typed && (listed || combined) {
        return Some(Cow::Borrowed(raw));
    }
    let mut set = Vec::new();
    if !typed {
        set.push(("type", "\"object\""));
    }
    // Some servers reject an object schema without properties, and most clients leave them out for tools without arguments.
    if !listed {
        set.push(("properties", "{}"));
    }
    Some(Cow::Owned(crate::json::set_members(raw, &set)))
}
