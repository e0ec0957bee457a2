//! Tools of responses that the client runs itself and whose calls are items of their own: shells, patches, computers.
//!
//! A model of another family gets each as a function. Its call becomes the item that the client knows, and the item of an earlier turn
//! a call of that function.

use std::borrow::Cow;

use crate::json::{Kind, set_members};
use crate::translate::neutral::{NeutralTool, ToolKind};
use crate::translate::text::Escaped;
use crate::translate::tree::{JsonNode, MISSING};

/// One such tool.
#[derive(Debug)]
pub(super) struct ClientTool {
    /// Its type, which is its name as a function.
    pub(super) kind: &'static str,
    /// The type of its calls. Their outputs have the same with an ending.
    pub(super) call: &'static str,
    /// How the ids of its calls begin.
    pub(super) prefix: &'static str,
    /// What the model is told as a function's description, and the schema of its arguments.
    pub(super) told: [&'static str; 2],
    /// The member of a call that has the arguments, or of the arguments and of a call.
    member: &'static str,
    inside: bool,
    /// What clients need in the arguments, and what stands there if the model gave none.
    needed: &'static [(&'static str, &'static str)],
    /// What every call has besides.
    besides: &'static str,
}

/// One action at a computer. Clients read no more than its type says.
macro_rules! action {
    () => {
        r#"{"type":"object","properties":{"type":{"type":"string","enum":["screenshot","click","double_click","move","drag","scroll","keypress","type","wait"]},"x":{"type":"integer"},"y":{"type":"integer"},"button":{"type":"string","enum":["left","right","wheel","back","forward"],"description":"Every click has one"},"scroll_x":{"type":"integer"},"scroll_y":{"type":"integer"},"path":{"type":"array","items":{"type":"object","properties":{"x":{"type":"integer"},"y":{"type":"integer"}},"required":["x","y"]},"description":"Of a drag"},"keys":{"type":"array","items":{"type":"string"},"description":"Of a keypress, or held meanwhile"},"text":{"type":"string","description":"What to type"}},"required":["type"]}"#
    };
}

pub(super) const LOCAL_SHELL: ClientTool = ClientTool {
    kind: "local_shell",
    call: "local_shell_call",
    prefix: "lsh",
    told: [
        "Run a command on the user's machine.",
        r#"{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"}},"working_directory":{"type":"string"},"timeout_ms":{"type":"number"},"env":{"type":"object","additionalProperties":{"type":"string"}}},"required":["command"]}"#,
    ],
    member: "action",
    inside: false,
    needed: &[("type", r#""exec""#), ("command", "[]"), ("env", "{}")],
    besides: "",
};

pub(super) const SHELL: ClientTool = ClientTool {
    kind: "shell",
    call: "shell_call",
    prefix: "sh",
    told: [
        "Run commands in a shell on the user's machine, one after the other. The answer has the output and the exit code of each.",
        r#"{"type":"object","properties":{"commands":{"type":"array","items":{"type":"string"}},"timeout_ms":{"type":"integer"},"max_output_length":{"type":"integer","description":"Most characters of each output"}},"required":["commands"]}"#,
    ],
    member: "action",
    inside: false,
    needed: &[
        ("commands", "[]"),
        ("timeout_ms", "null"),
        ("max_output_length", "null"),
    ],
    besides: r#","environment":{"type":"local"}"#,
};

pub(super) const APPLY_PATCH: ClientTool = ClientTool {
    kind: "apply_patch",
    call: "apply_patch_call",
    prefix: "apc",
    told: [
        "Create, update or delete one file. Each line of a diff begins with `+` (added), `-` (removed) or a space (kept as it is); of a new file \
         all begin with `+`. Each section of an update begins with a line `@@`, or `@@ ` and a line of the file that stands before it, such \
         as the head of its function; it has three kept lines before and after what changes. There are no line numbers.",
        r#"{"type":"object","properties":{"type":{"type":"string","enum":["create_file","update_file","delete_file"]},"path":{"type":"string"},"diff":{"type":"string","description":"Not of delete_file"}},"required":["type","path"]}"#,
    ],
    member: "operation",
    inside: false,
    needed: &[],
    besides: "",
};

const COMPUTER_WORDS: &str = "Use the screen, the mouse and the keyboard of a computer. The answer is a screenshot; coordinates are its pixels.";
const NO_CHECKS: &str = r#","pending_safety_checks":[]"#;

pub(super) const COMPUTER: ClientTool = ClientTool {
    kind: "computer",
    call: "computer_call",
    prefix: "cu",
    told: [
        COMPUTER_WORDS,
        concat!(
            r#"{"type":"object","properties":{"actions":{"type":"array","items":"#,
            action!(),
            r#","description":"Done in this order"}},"required":["actions"]}"#
        ),
    ],
    member: "actions",
    inside: true,
    needed: &[("actions", "[]")],
    besides: NO_CHECKS,
};

pub(super) const COMPUTER_PREVIEW: ClientTool = ClientTool {
    kind: "computer_use_preview",
    call: "computer_call",
    prefix: "cu",
    told: [
        COMPUTER_WORDS,
        concat!(
            r#"{"type":"object","properties":{"action":"#,
            action!(),
            r#"},"required":["action"]}"#
        ),
    ],
    member: "action",
    inside: true,
    needed: &[("action", r#"{"type":"screenshot"}"#)],
    besides: NO_CHECKS,
};

const ALL: [&ClientTool; 5] = [
    &LOCAL_SHELL,
    &SHELL,
    &APPLY_PATCH,
    &COMPUTER,
    &COMPUTER_PREVIEW,
];

/// The tool of this type.
pub(super) fn of_kind(kind: &str) -> Option<&'static ClientTool> {
    ALL.into_iter().find(|tool| tool.kind == kind)
}

/// The name of the tool that a choice of this type forces.
pub(super) fn chosen(kind: &str) -> Option<&'static str> {
    let kind = if kind == "computer_use" {
        COMPUTER.kind
    } else {
        kind
    };
    of_kind(kind).map(|tool| tool.kind)
}

/// Whether an item of this type is the output of a call.
pub(super) fn is_output(kind: &str) -> bool {
    let call = kind.strip_suffix("_output");
    call.is_some_and(|call| ALL.into_iter().any(|tool| tool.call == call))
}

/// The tool's name and the arguments of a call, if the item is one.
pub(super) fn call(item: &JsonNode<'_>) -> Option<(&'static str, String)> {
    let kind = item.get("type").word();
    let mut tools = ALL.into_iter().filter(|tool| tool.call == kind);
    let first = tools.next()?;
    let has = |tool: &&ClientTool| !item.get(tool.member).is_empty();
    let tool = if has(&first) {
        first
    } else {
        tools.find(has).unwrap_or(first)
    };
    Some((tool.kind, tool.arguments(item)))
}

impl ClientTool {
    /// The tool as a function; `declared` is what the client sent.
    pub(super) fn offered<'a>(&self, declared: &JsonNode<'a>) -> NeutralTool<'a> {
        let [words, schema] = self.told;
        let mut words = words.to_owned();
        let size = ["display_width", "display_height"].map(|side| declared.get(side).count());
        if let [Some(width), Some(height)] = size {
            words.push_str(&format!(" The screen has {width} x {height} pixels."));
        }
        let skills = declared.get("environment").get("skills");
        if !skills.is_empty() {
            words.push_str(
                " Skills are folders whose SKILL.md says how something is done; read it before you do that:",
            );
        }
        for skill in skills.elements() {
            let [name, path, what] = ["name", "path", "description"]
                .map(|member| skill.get(member).plain().unwrap_or_default());
            words.push_str(&format!("\n- {name} in {path}: {what}"));
        }
        NeutralTool {
            name: Cow::Borrowed(self.kind),
            kind: ToolKind::Typed(self.kind),
            description: Some(Escaped::of(&words)),
            schema: Some(Cow::Borrowed(schema)),
            ..NeutralTool::default()
        }
    }

    /// The arguments of an item, without the words that are only there because clients need them.
    fn arguments(&self, item: &JsonNode<'_>) -> String {
        let given = item.get(self.member);
        if self.inside {
            return format!("{{\"{}\":{}}}", self.member, given.raw);
        }
        let is_word = |name: &str, value: &JsonNode<'_>| {
            value.kind == Kind::String && self.needed.contains(&(name, value.raw))
        };
        let members = given
            .members()
            .filter(|(name, value)| !value.is_null() && !is_word(name, value));
        let members: Vec<String> = members
            .map(|(name, value)| format!("{}:{}", crate::json::quoted(name), value.raw))
            .collect();
        format!("{{{}}}", members.join(","))
    }

    /// The members of a call's item that say what to do. Whatever a model gave as arguments, clients find what they need.
    pub(super) fn members(&self, arguments: &str) -> String {
        let given = JsonNode::parse(arguments.as_bytes()).unwrap_or_else(|_| MISSING.clone());
        let needed: Vec<(&str, Cow<'_, str>)> = self
            .needed
            .iter()
            .filter_map(|(name, empty)| Some((*name, mended(given.get(name), empty)?)))
            .collect();
        let set: Vec<(&str, &str)> = needed
            .iter()
            .map(|(name, value)| (*name, value.as_ref()))
            .collect();
        let filled = set_members(given.object().unwrap_or("{}"), &set);
        let Self {
            member, besides, ..
        } = self;
        if !self.inside {
            return format!("\"{member}\":{filled}{besides}");
        }
        let filled = JsonNode::parse(filled.as_bytes());
        let value = filled
            .as_ref()
            .map_or("null", |filled| filled.get(member).raw);
        format!("\"{member}\":{value}{besides}")
    }
}

/// What has to stand in the place of a value: nothing else if it is of the right kind, a list of it where only the list is missing.
fn mended<'a>(value: &JsonNode<'a>, empty: &'static str) -> Option<Cow<'a, str>> {
    let wanted = JsonNode::parse(empty.as_bytes()).map_or(Kind::Null, |empty| empty.kind);
    match (value.kind, wanted) {
        (Kind::Null, _) => Some(Cow::Borrowed(empty)),
        (kind, wanted) if kind == wanted || wanted == Kind::Null => None,
        (Kind::String | Kind::Object, Kind::Array) => Some(Cow::Owned(format!("[{}]", value.raw))),
        _ => Some(Cow::Borrowed(empty)),
    }
}
