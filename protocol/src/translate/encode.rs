//! Shared by the encoders of requests: the target, the tools as it knows them, and checks of what it accepts.

use std::borrow::Cow;

use super::abilities::{Abilities, Sampling};
use super::effort;
use super::fates::unsupported;
use super::freeform::{SCHEMA, wrapped};
use super::ids::{call_id, hex, tool_name};
use super::losses::Losses;
use super::neutral::{
    AnswerFormat, Effort, MediaSource, NeutralBlock, NeutralCall, NeutralPrompt, NeutralTool,
    ThinkingMode, ToolChoice, ToolKind,
};
use super::schema::is_strict;
use super::text::{Escaped, JsonWriter};
use crate::class;
use crate::json::{Cursor, Kind, quoted};
use crate::{BadRequest, Family, Remedy, ServiceTier};

/// The target of a request.
#[derive(Debug, Clone, Copy)]
pub struct EncodeTarget<'t> {
    /// The upstream's name of the model.
    pub model: &'t str,
    /// Its abilities.
    pub abilities: &'t Abilities,
}

/// A prompt on its way into one family's bytes.
pub(crate) struct Encoding<'e> {
    pub(crate) target: &'e EncodeTarget<'e>,
    /// The caller's family, whose names refusals and losses use.
    pub(crate) caller: Family,
    pub(crate) family: Family,
    pub(crate) losses: &'e mut Losses,
}

/// A field that every family has under another name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    /// The conversation.
    Turns,
    /// The form of the answer.
    Format,
    /// How hard to think.
    Thinking,
    /// Thinking of earlier turns.
    OldThinking,
    /// Texts that end the answer.
    Stops,
    /// The output limit.
    Limit,
    /// A picture in the conversation.
    Picture,
    Document,
}

impl Encoding<'_> {
    /// The caller's name for a field.
    pub(crate) fn field(&self, field: Field) -> &'static str {
        let [chat, responses, messages] = match field {
            Field::Turns => ["messages", "input", "messages"],
            Field::Format => ["response_format", "text.format", "output_config.format"],
            Field::Thinking => ["reasoning_effort", "reasoning", "thinking"],
            Field::OldThinking => [
                "messages.reasoning_content",
                "input.reasoning",
                "messages.thinking",
            ],
            Field::Stops => ["stop", "stop", "stop_sequences"],
            Field::Limit => ["max_tokens", "max_output_tokens", "max_tokens"],
            Field::Picture => ["image_url", "input_image", "image"],
            Field::Document => ["file", "input_file", "document"],
        };
        match self.caller {
            Family::Chat => chat,
            Family::Responses => responses,
            Family::Messages => messages,
        }
    }

    /// Writes the target's word for a tier, if it needs one.
    pub(crate) fn tier(&self, out: &mut JsonWriter, tier: ServiceTier) -> Result<(), BadRequest> {
        // Every target serves it without being asked, and some reject the word.
        if tier == ServiceTier::Standard {
            return Ok(());
        }
        let words = class::tier_words(class::fields(self.family), tier);
        if let Some((field, word)) = words.filter(|(field, _)| self.abilities().takes(field)) {
            out.name(field).plain(word);
            return Ok(());
        }
        let asked = class::tier_words(class::fields(self.caller), tier);
        let field = asked.map_or("service_tier", |(field, _)| field);
        let message = format!(
            "`{field}`: this model is served through the {} family, which does not sell that. Leave it out.",
            self.family
        );
        Err(unsupported(field, message))
    }

    pub(crate) fn abilities(&self) -> &Abilities {
        self.target.abilities
    }

    /// A call id in the form the target accepts.
    pub(crate) fn id<'i>(&self, id: &'i str) -> Cow<'i, str> {
        call_id(id, self.family, self.abilities().tool_ids)
    }

    /// The arguments of a call as one JSON object; any other value is wrapped, because some families require an object.
    pub(crate) fn object(&mut self, call: &NeutralCall<'_>) -> String {
        if call.kind == ToolKind::Custom {
            return wrapped(&call.arguments);
        }
        let text = call.arguments.trim();
        if text.is_empty() {
            return "{}".to_owned();
        }
        let mut cursor = Cursor::new(text.as_bytes()).ok();
        let object = cursor.as_mut().and_then(|cursor| {
            cursor
                .skip()
                .and_then(|value| cursor.end().map(|()| value.kind))
                .ok()
        });
        if object == Some(Kind::Object) {
            return text.to_owned();
        }
        // A model's invalid arguments are part of the conversation. Refusing them would end it for good; as text the model can
        // see its mistake.
        self.losses.add("arguments", "wrapped");
        format!("{{\"_raw\":{}}}", quoted(text))
    }

    /// The arguments of a call for a family in which they are text: a function's own text, if there is any.
    pub(crate) fn arguments<'c>(&mut self, call: &'c NeutralCall<'_>) -> Cow<'c, str> {
        if call.kind == ToolKind::Function && !call.arguments.trim().is_empty() {
            return Cow::Borrowed(&call.arguments);
        }
        Cow::Owned(self.object(call))
    }

    /// The tools offered and the choice among them, for a family without namespaces. Only responses has lists of allowed tools;
    /// elsewhere the other tools are not offered.
    pub(crate) fn offered<'p>(
        &mut self,
        prompt: &mut NeutralPrompt<'p>,
    ) -> Result<Option<ToolChoice<'p>>, BadRequest> {
        let mut choice = prompt.choice.take();
        if let Some(ToolChoice::Allowed { names, required }) = &mut choice
            // Keeping the whole list of tools keeps the prompt the same, and with it the vendor's cache.
            && self.family == Family::Responses
        {
            let known = prompt
                .tools
                .iter()
                .filter(|tool| names.contains(&tool.name));
            let known: Vec<_> = known
                .map(|tool| {
                    tool_name(tool.namespace.as_deref(), &tool.name)
                        .into_owned()
                        .into()
                })
                .collect();
            if !known.is_empty() {
                return Ok(Some(ToolChoice::Allowed {
                    names: known,
                    required: *required,
                }));
            }
        }
        if let Some(ToolChoice::Allowed { names, required }) = &choice {
            prompt.tools.retain(|tool| names.contains(&tool.name));
            self.losses.add("tool_choice", "narrowed");
            choice = Some(if *required {
                ToolChoice::Required
            } else {
                ToolChoice::Auto
            });
        }
        if let Some(ToolChoice::Tool(name)) = &choice {
            let Some(tool) = prompt.tools.iter().find(|tool| tool.name == *name) else {
                // The customer's own text goes into a message: no control characters, and no more than a name may have.
                let shown: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
                return Err(unsupported(
                    "tool_choice",
                    format!(
                        "`tool_choice` forces `{shown}`, which this model cannot be offered. Offer that tool as a function of your own, or force none."
                    ),
                ));
            };
            choice = Some(ToolChoice::Tool(
                tool_name(tool.namespace.as_deref(), &tool.name)
                    .into_owned()
                    .into(),
            ));
        }
        if choice == Some(ToolChoice::Required) && prompt.tools.is_empty() {
            return Err(unsupported(
                "tool_choice",
                "`tool_choice` forces a call, but this model can be offered none of the tools. Offer a function.",
            ));
        }
        Ok(choice.filter(|_| !prompt.tools.is_empty()))
    }

    /// The temperature and top_p that the target accepts.
    pub(crate) fn sampling<'p>(
        &mut self,
        prompt: &NeutralPrompt<'p>,
    ) -> (Option<&'p str>, Option<&'p str>) {
        let (temperature, top_p) = (prompt.temperature, prompt.top_p);
        match self.abilities().sampling {
            Sampling::Full => (temperature, top_p),
            // Temperature is what most clients set on purpose; top_p is often only their default.
            Sampling::One if temperature.is_some() => {
                self.lost(top_p.is_some(), "top_p");
                (temperature, None)
            }
            Sampling::One => (None, top_p),
            Sampling::None => {
                self.lost(temperature.is_some(), "temperature");
                self.lost(top_p.is_some(), "top_p");
                (None, None)
            }
        }
    }

    /// The effort to write for a target that takes one; [`Effort::None`] turns thinking off.
    pub(crate) fn effort(&mut self, prompt: &NeutralPrompt<'_>) -> Option<Effort> {
        let wish = prompt.thinking;
        if wish.mode == ThinkingMode::Off || wish.effort == Some(Effort::None) {
            return Some(Effort::None).filter(|none| self.abilities().efforts.contains(none));
        }
        let wanted = wish
            .effort
            .or(if let ThinkingMode::Budget(tokens) = wish.mode {
                Some(effort::of_budget(tokens))
            } else {
                None
            })?;
        let known = self.abilities().effort(wanted);
        if known != Some(wanted) {
            self.losses.add("effort", "clamped");
        }
        known
    }

    /// A request of this family, begun; `size` is the length of the original body.
    pub(crate) fn begin(&self, size: usize) -> JsonWriter {
        let mut out = JsonWriter::with_capacity(size + size / 10 + 512);
        out.open('{');
        out.name("model").plain(self.target.model);
        out
    }

    /// Whether a tool is sent with its free text instead of as a function.
    pub(crate) fn is_free(&self, tool: &NeutralTool<'_>) -> bool {
        tool.kind == ToolKind::Custom && self.abilities().custom_tools
    }

    /// The same of the tool with this name.
    pub(crate) fn is_free_named(&self, prompt: &NeutralPrompt<'_>, name: &str) -> bool {
        let named =
            |tool: &&NeutralTool<'_>| tool_name(tool.namespace.as_deref(), &tool.name) == name;
        let mut tools = prompt.tools.iter().filter(named);
        tools.any(|tool| self.is_free(tool))
    }

    /// The form that an answer must have, as chat or responses say it: in a member, or in one within it.
    pub(crate) fn format(
        &mut self,
        out: &mut JsonWriter,
        (member, within): (&str, Option<&str>),
        format: Option<&AnswerFormat<'_>>,
    ) -> Result<(), BadRequest> {
        match format {
            None => {}
            Some(AnswerFormat::Json) => out.name(member).raw(r#"{"type":"json_object"}"#),
            Some(AnswerFormat::Schema { .. }) if !self.abilities().json_schema => {
                return Err(no_schema(self));
            }
            Some(AnswerFormat::Schema {
                name,
                description,
                schema,
                strict,
            }) => {
                out.name(member).open('{');
                out.name("type").plain("json_schema");
                if let Some(within) = within {
                    out.name(within).open('{');
                }
                self.schema(out, name.as_ref(), description.as_ref(), schema, *strict);
                if within.is_some() {
                    out.close('}');
                }
                out.close('}');
            }
        }
        Ok(())
    }

    /// The members of a JSON schema for the answer. Only chat and responses clients say whether it is strict; for others it is
    /// strict if the schema allows it.
    fn schema(
        &mut self,
        out: &mut JsonWriter,
        name: Option<&Escaped<'_>>,
        description: Option<&Escaped<'_>>,
        schema: &str,
        strict: Option<bool>,
    ) {
        let name = name.map_or(Cow::Borrowed("output"), |name| {
            Cow::Owned(tool_name(None, name.as_str()).into_owned())
        });
        out.name("name").plain(&name);
        out.text_if("description", description);
        out.name("schema").raw(schema);
        // Messages clients are always held to their schema by their own vendor, so strict is what they expect. A schema that a
        // strict target would reject is sent as a wish: an answer that mostly fits is better than none, and the loss says so.
        let strict = strict.unwrap_or_else(|| self.caller == Family::Messages && is_strict(schema));
        if self.caller == Family::Messages && !strict {
            self.losses.add("schema", "relaxed");
        }
        out.name("strict").flag(strict);
    }

    /// Reports a field that is dropped, if it was there.
    pub(crate) fn lost(&mut self, was_there: bool, field: &str) {
        if was_there {
            self.losses.add(field, "dropped");
        }
    }

    /// Refuses pictures and documents that the target cannot read.
    pub(crate) fn readable(&self, block: &NeutralBlock<'_>) -> Result<(), BadRequest> {
        match block {
            NeutralBlock::Image { .. } if !self.abilities().vision => Err(unsupported(
                self.field(Field::Turns),
                "This model cannot read pictures. Leave them out.",
            )
            .with(Remedy::WithoutEach(self.field(Field::Picture)))),
            NeutralBlock::File { .. } if !self.abilities().files => Err(unsupported(
                self.field(Field::Turns),
                "This model cannot read documents here. Leave them out, or send their text instead.",
            )
            .with(Remedy::WithoutEach(self.field(Field::Document)))),
            NeutralBlock::File {
                source: MediaSource::Url(_),
                ..
            } => Err(unsupported(
                self.field(Field::Turns),
                "Documents by address cannot be sent to this model. Send the document inline, as base64.",
            )
            .with(Remedy::Inline)),
            _ => Ok(()),
        }
    }
}

/// Longest key or name of a user.
// Longer ones are rejected by vendors, which would fail a request over a mere label; a hash keeps equal ones equal.
const MAX_KEY: usize = 64;

/// A prompt cache key that every vendor accepts.
pub(crate) fn key(text: &Escaped<'_>) -> String {
    let plain = text.plain();
    if plain.len() > MAX_KEY {
        hex(&plain, MAX_KEY)
    } else {
        plain.into_owned()
    }
}

/// The customer's end user in a form that every vendor accepts.
pub(crate) fn user(name: &str) -> Cow<'_, str> {
    if name.len() > MAX_KEY {
        Cow::Owned(hex(name, MAX_KEY))
    } else {
        Cow::Borrowed(name)
    }
}

/// The refusal of a JSON schema for the answer.
pub(crate) fn no_schema(encoding: &Encoding<'_>) -> BadRequest {
    unsupported(
        encoding.field(Field::Format),
        "This model cannot be held to a JSON schema. Ask for JSON in the prompt, or use another model.",
    )
}

/// A source as an address: what is inline becomes a data URL.
pub(crate) fn data_url(out: &mut JsonWriter, source: &MediaSource<'_>) {
    match source {
        MediaSource::Url(url) => out.escaped(url.as_str()),
        MediaSource::Base64 { media, data } => {
            out.pieces(&["data:", media.as_str(), ";base64,", data.as_str()])
        }
    }
}

/// What chat and responses call a tool: one with free text, or a function.
pub(crate) fn kind(free: bool) -> &'static str {
    if free { "custom" } else { "function" }
}

/// A tool's description for a target that knows only functions.
pub(crate) fn description<'d>(tool: &'d NeutralTool<'_>) -> Option<Escaped<'d>> {
    let told = tool.description.as_ref().map(Escaped::as_str);
    if tool.kind != ToolKind::Custom {
        return told.map(Escaped::raw);
    }
    let mut text = told.map(|told| format!("{told}\\n\\n")).unwrap_or_default();
    text.push_str("Put the raw text in \\\"input\\\".");
    if let Some((syntax, definition)) = &tool.grammar {
        text.push_str(&format!(
            " Format ({}):\\n{}",
            syntax.as_str(),
            definition.as_str()
        ));
    }
    Some(Escaped::raw(text))
}

/// The schema of a tool as a function.
pub(crate) fn schema<'s>(tool: &'s NeutralTool<'_>) -> &'s str {
    match tool.kind {
        ToolKind::Custom => SCHEMA,
        ToolKind::Function | ToolKind::Typed(_) => tool
            .schema
            .as_deref()
            .unwrap_or(r#"{"type":"object","properties":{}}"#),
    }
}

/// Whether a turn consists of two neighbouring texts only, which can then be joined into one string.
pub(crate) fn only_text(blocks: &[NeutralBlock<'_>]) -> bool {
    blocks
        .iter()
        .all(|block| matches!(block, NeutralBlock::Text { .. }))
}

/// The texts among the blocks, joined.
pub(crate) fn joined<'a>(blocks: &[NeutralBlock<'a>]) -> Escaped<'a> {
    Escaped::join(
        blocks.iter().filter_map(|block| {
            if let NeutralBlock::Text { text, .. } = block {
                Some(text)
            } else {
                None
            }
        }),
        "\\n\\n",
    )
}
