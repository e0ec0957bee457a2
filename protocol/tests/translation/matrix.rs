//! Generates `docs/translation.md` from the tables that the code reads, and tests each of its cells.
//! `UPDATE_TRANSLATION=1 cargo test -p farebox-protocol --test translation` writes the page.

use std::path::PathBuf;

use farebox_protocol::Family;
use farebox_protocol::translate::fates::{FateRow, FieldFate};
use farebox_protocol::translate::{fields, is_translated};
use serde_json::{Value, json};

use super::cells;
use super::help::*;

const HEAD: &str = "# How a request is translated for another family

A slug serves callers of all three families, whatever its targets speak. A request in the target's own family is not translated: its
bytes pass, except what *Thinking* says and `x-farebox-removed` and `x-farebox-lost` name. Any other is translated. (*Slug*: the model name that callers send.
*Target*: a provider's model behind it. *Seal*: a vendor's signature on its thinking.) These lists give the fate of each field of a
request; the gateway reads the same tables.

- *carried*: the target gets the same field.
- *converted*: expressed in the target's words, in the field of the same name, or in the one after the colon.
- *dropped*: left out, and named in `x-farebox-lost`.
- *silent*: means nothing to the model; left out and not named.
- *refused*: leaving it out would change the answer, so the request gets a 400 with code `unsupported_by_model`; in brackets what to do
  instead.

A test checks each field (`protocol/tests/translation/matrix.rs` and, for converted fields, the examples in `cells.rs` beside it).

A field that no table names is dropped and named. Values that request nothing (`null`, `false`, an empty list, the default) are
never dropped or refused. Some carried and converted fields depend on the target's abilities; then `x-farebox-lost` names them too:
`temperature=clamped`, `max_tokens=raised`, `thinking=off(no_signature)`, `effort=clamped`, `schema=relaxed`,
`tools.strict=dropped`, `cache_control.ttl=shortened`, `prefill=continued`, `tool_choice=narrowed`, `arguments=wrapped`. Pictures,
documents and JSON schemas for a target without that ability are refused. So is a request of 100,000 JSON values or more, where a
schema or a tool's input counts as one value: its tree would take a hundred times the memory of its text.

Of the items that responses clients keep, `agent_message` becomes a user message that names its author and its recipient; sealed parts,
items of tools that ran elsewhere and unknown ones are dropped and named (`input.something_new=dropped`), because clients send them
again in every later turn. A router's `reasoning` in chat is an effort, a number of tokens (`max_tokens`), or only whether (`enabled`).

Tools that clients run themselves become functions of their type's name: `bash_*`, `text_editor_*` and `memory_*` of messages,
`local_shell`, `shell`, `apply_patch`, `computer` and `computer_use_preview` of responses. Calls of the latter come back as the items
that their clients know (`shell_call`, `apply_patch_call`, `computer_call`), in streams in one piece, and their outputs go along in
later turns. A tool of another type is dropped and named (`tools.tool_search=dropped`), and refused where it is the only one or
`tool_choice` forces it. A `shell` whose `environment` is not `local` runs in a container of the provider: refused on every path.

## Thinking

Thinking of another family is shown but never sent back to a vendor: its seals are cut from every request, and the loss is named.
So a reasoning model begins each turn of a tool loop without its own earlier reasoning. It sees its calls, their results and all
text; it may have to repeat conclusions that it drew silently between two calls, which costs tokens and occasionally leads to a
different result. Clients of the target's own family lose nothing, because their bytes pass unchanged, except what the next paragraph names.

Chat services add members of their own to an assistant's turn, and clients send them back to every model they use later. Where a
service is known to refuse other names (`turn_members` in `src/config/presets.toml`; `kind = \"openai\"`, also in front of Azure,
`mistral` and `groq`), thinking (`reasoning_content`), signatures and other members from elsewhere are left out and named:
`messages.reasoning_content=dropped`. Gemini refuses a call that it did not sign: the first call of each turn that has no signature
says that it was made elsewhere. Call ids become what `tool_id` says, and with `reasoning_echo = \"all\"` a turn without thinking has a
space for it.

What the gateway makes up is marked, because clients send it back to every model they use later. Ids of output items end in `_fbx`;
such an `id` is removed from the request, and its item stays. Call ids are never marked. Seals (`signature`, `data`,
`encrypted_content`) that begin with `fbx1.` are removed with their thinking block or reasoning item, and named: `thinking=dropped`.
A native request with a thinking budget whose last calls then have no signed block is sent without thinking
(`thinking=off(no_signature)`); so is one whose last calls come from a model that does not think. Responses targets and native
targets that think adaptively continue to think.

If a vendor rejects a seal of another vendor or account, the request is repeated once, without any, before the first byte of the
answer. The rules behind this, as published:

- Native: a block goes back unchanged and before the calls that it led to; with a budget, the last turn with calls begins with one
  ([extended thinking](https://platform.claude.com/docs/en/build-with-claude/extended-thinking)). A model drops blocks that it cannot
  read. Newer models also check that system prompt, tools, messages and thinking before a block are as they were, and else answer
  400 `Invalid signature in thinking block. The block is bound to a different conversation`
  ([preserved thinking](https://platform.claude.com/docs/en/build-with-claude/preserved-thinking)); after that the block and all
  later ones are invalid, so removing the block it names is not enough
  ([the remedy](https://platform.claude.com/docs/en/build-with-claude/preserved-thinking/fix-bound-to-a-different-conversation)).
- Responses: reasoning items go back with the calls they led to, as `encrypted_content` when nothing is stored
  ([reasoning](https://platform.openai.com/docs/guides/reasoning)). An id that was not stored is `Item with id 'rs_…' not found`
  ([report](https://github.com/vercel/ai/issues/7543)); content of another organization is `invalid_encrypted_content`
  ([report](https://github.com/openai/codex/issues/8145)); a call's id ties it to its reasoning item, so both go together.
- Chat: `reasoning_content` is plain text; no seal is published.

## Towards responses

Requests are sent with `store: false`, without item ids, and with an explicit `strict` for every tool. A model with the capability
`reasoning` gets `reasoning.effort` and no sampling parameters, unless the target's `abilities` say otherwise. Native clients get
summaries of the reasoning. `count_tokens` uses `/responses/input_tokens`. This family has no stop strings, so other targets of
the route are asked first. Else the gateway cuts the answer before the first match in its text (`stop=cut_here`; thinking and
arguments never match): it asks for a stream, even for a whole answer, leaves the target there, and charges as if you had left.
The same is done on chat for xAI's reasoning models, which refuse stop strings.
Other families have no `phase` for earlier messages, so it is not sent. Services of this
family take no limit below 16 tokens: a smaller one is sent as 16 (`max_tokens=raised`), but no more output than declared is held,
charged and reported. A responses request goes to responses targets with its limit as it is, and they refuse one below 16.

## Answers

Text, thinking, refusals and tool calls reach every caller. What only the target's family has does not: citations and annotations,
searches and other tools that ran on the provider's side, redacted thinking, audio, pauses. An answer's headers are sent before its
losses are known, so `x-farebox-lost` names only losses of the request; the receipt and the log also name those of the answer,
prefixed with `answer.`: `answer.citations=dropped(2)`, `answer.web_search_call=dropped`. In whole answers a call that the
limit cut is left out (`answer.tool_use=cut`); in whole native ones, arguments that are not an object are wrapped
(`answer.arguments=wrapped`).
Unknown blocks and items are reported as `answer.block` and `answer.item`, frames that are not JSON as `answer.frame`. A chat
answer has one text: texts around calls are joined.
";

fn targets(from: Family) -> Vec<Family> {
    Family::ALL
        .into_iter()
        .filter(|to| is_translated(from, *to))
        .collect()
}

/// The fields of one direction, by their fate.
fn direction(from: Family, to: Family) -> String {
    let mut lists =
        ["carried", "converted", "dropped", "silent", "refused"].map(|fate| (fate, Vec::new()));
    for row in fields(from) {
        let (list, note) = match row.fate(to) {
            FieldFate::Carried => (0, String::new()),
            FieldFate::Converted => match cells::place(from, to, row.name) {
                place if place == row.name => (1, String::new()),
                place => (1, format!(": `{place}`")),
            },
            FieldFate::Dropped => (2, String::new()),
            FieldFate::Silent => (3, String::new()),
            FieldFate::Refused(remedy) => (4, format!(" ({})", remedy.trim_end_matches('.'))),
        };
        lists[list].1.push(format!("`{}`{note}", row.name));
    }
    let lines = lists.iter().filter(|(_, names)| !names.is_empty());
    let lines = lines.map(|(fate, names)| format!("- *{fate}*: {}\n", names.join(", ")));
    format!("\nTo {to}:\n\n{}", lines.collect::<String>())
}

fn page() -> String {
    let mut out = HEAD.to_owned();
    for from in Family::ALL {
        out.push_str(&format!("\n## From {from}\n"));
        for to in targets(from) {
            out.push_str(&direction(from, to));
        }
        let nothing = |row: &FateRow| {
            let values: Vec<String> = row
                .defaults
                .iter()
                .map(|value| format!("`{value}`"))
                .collect();
            (!values.is_empty()).then(|| format!("`{}` {}", row.name, values.join(", ")))
        };
        let nothing: Vec<String> = fields(from).iter().filter_map(nothing).collect();
        out.push_str(&format!("\nRequests nothing: {}.\n", nothing.join("; ")));
    }
    out
}

#[test]
fn the_page_is_what_the_code_does() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/translation.md");
    let page = page();
    if std::env::var_os("UPDATE_TRANSLATION").is_some() {
        std::fs::write(&path, &page).expect("the page is written");
    }
    let written = std::fs::read_to_string(&path).expect("docs/translation.md");
    assert_eq!(
        written, page,
        "write it again: UPDATE_TRANSLATION=1 cargo test -p farebox-protocol --test translation"
    );
}

/// Every cell: a value that requests something meets the fate on the page.
#[test]
fn every_cell_holds() {
    for from in Family::ALL {
        for to in targets(from) {
            fields(from).iter().for_each(|row| try_cell(from, to, row));
        }
    }
}

fn try_cell(from: Family, to: Family, row: &FateRow) {
    let cell = format!("{} from {from} to {to}", row.name);
    let asks = asking(from, &json!({(row.name): ["x"]}));
    let result = translated(from, to, &able(to), &asks);
    let is_lost = |header: &str| {
        header
            .split(", ")
            .any(|loss| loss == format!("{}=dropped", row.name))
    };
    match row.fate(to) {
        FieldFate::Refused(remedy) => {
            let bad = result.expect_err(&cell);
            assert_eq!(
                (bad.code, bad.param.as_deref()),
                (Some("unsupported_by_model"), Some(row.name)),
                "{cell}"
            );
            assert!(bad.message.contains(remedy), "{cell}: {}", bad.message);
        }
        FieldFate::Dropped => assert!(is_lost(&result.expect(&cell).losses.header()), "{cell}"),
        FieldFate::Silent => assert!(result.expect(&cell).losses.is_empty(), "{cell}"),
        FieldFate::Carried => {
            let body = asking(from, &json!({(row.name): sample(row.name)}));
            assert_eq!(sent(from, to, &body)[row.name], sample(row.name), "{cell}");
        }
        // `cells.rs` tests what these become; here they must not be reported as dropped.
        FieldFate::Converted => assert!(
            result.map_or(true, |done| !is_lost(&done.losses.header())),
            "{cell}"
        ),
    }
    for default in row.defaults {
        let value: Value = serde_json::from_str(default).expect("JSON");
        let done = translated(
            from,
            to,
            &able(to),
            &asking(from, &json!({(row.name): value})),
        )
        .expect(&cell);
        assert!(
            !is_lost(&done.losses.header()),
            "{cell}: {default} is the default"
        );
    }
}

fn sample(name: &str) -> Value {
    match name {
        "max_tokens" | "top_k" => json!(77),
        "stream" => json!(true),
        _ => json!(0.5),
    }
}
