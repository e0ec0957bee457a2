//! Settings for client programs, ready to paste, and a check of the key. Uses the table in [`crate::setup`].

use std::sync::Arc;

use farebox_ledger::Key;
use maud::{Markup, html};

use super::pay;
use crate::config::{Model, Shop};
use crate::setup::{self, ClientProgram, SetupBlock};

/// The three most common mistakes, each with its remedy; `{v1}` and `{native}` are the two base URLs.
const TRAPS: [&str; 3] = [
    "A chat or responses client needs {v1}, never the native base URL.",
    "A native client needs {native}, never /v1.",
    "/v1 must not appear twice: if a client asks for a base URL, enter exactly {v1}.",
];

/// Where no program is found.
const NONE: &str = "No program of the list has this name. Any that takes a base URL and a key works with those above.";

/// The result of checking the key.
#[derive(Debug)]
pub(in crate::customer) struct Checked {
    pub(in crate::customer) good: bool,
    pub(in crate::customer) text: String,
}

/// What the address of the view asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::customer) struct SetupQuery {
    /// A slug.
    pub(in crate::customer) model: String,
    /// Part of a program's name.
    pub(in crate::customer) find: String,
    /// The id of the program that is to be open.
    pub(in crate::customer) program: String,
}

impl SetupQuery {
    /// Whether a program has the name that is looked for. The script compares in the same way.
    fn finds(&self, client: &ClientProgram) -> bool {
        let name = plain(&name(client));
        let mut words = self.find.split_whitespace().map(plain);
        words.all(|word| name.contains(&word))
    }
}

/// What a program is found by: its name, as its vendor and as the command write it.
fn name(client: &ClientProgram) -> String {
    format!("{} {}", client.title, client.id)
}

/// Letters and digits alone, all small: "AI SDK" is found by `ai-sdk` and by `aisdk`.
fn plain(text: &str) -> String {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// The view. It never contains the key itself: the browser replaces the placeholder, if at all.
pub(in crate::customer) fn page(
    public_url: &str,
    models: &[Arc<Model>],
    query: &SetupQuery,
    checked: Option<&Checked>,
    (shop, key): (&Shop, &Key),
) -> Markup {
    let is_out = !key.customer.account.balance().is_positive();
    let base = public_url.trim_end_matches('/');
    let (v1, native) = (format!("{base}/v1"), format!("{base}/native"));
    html! {
        h1 { "Set up" }
        section.card aria-labelledby="bases" {
            h2 #bases { "Base URLs" }
            dl.prices {
                dt { "Chat and responses clients" } dd { code { (v1) } }
                dt { "Native clients" } dd { code { (native) } }
                dt { "Key" } dd { "Sent as " code { "Authorization: Bearer " (setup::KEY) } }
            }
            ul.traps { @for trap in TRAPS { li { (trap.replace("{v1}", &v1).replace("{native}", &native)) } } }
        }
        @if is_out {
            p.problem { "Nothing is available: requests with it are refused until it is topped up." }
            (pay::ways(shop, key))
        }
        (check(checked))
        (programs(public_url, models, query))
    }
}

/// The programs, of which one is unfolded: the one that is asked for, or the first that is found.
fn programs(public_url: &str, models: &[Arc<Model>], query: &SetupQuery) -> Markup {
    // A name that is none of these is ignored.
    let chosen = models.iter().find(|model| model.slug == query.model);
    let chosen = chosen.map(AsRef::as_ref);
    let all = setup::clients();
    let found = |client: &&ClientProgram| query.finds(client);
    let count = all.iter().filter(found).count();
    let listed = |client: &&ClientProgram| count == 0 || query.finds(client);
    let asked = |client: &&ClientProgram| client.id == query.program;
    let asked = all.iter().filter(listed).find(asked);
    let open = asked.or_else(|| all.iter().find(listed));
    html! {
        section.card aria-labelledby="programs" {
            h2 #programs { "Programs" }
            form.inline #find-program role="search" method="get" action="/dashboard/setup" {
                div { label for="find" { "Find a program" }
                    input #find type="search" name="find" value=(query.find) autocomplete="off" spellcheck="false" maxlength="100"; }
                div { label for="model" { "Model in the settings" } select #model name="model" {
                    option value="" { "the default of each program" }
                    @for model in models {
                        option value=(model.slug) selected[chosen.is_some_and(|chosen| chosen.slug == model.slug)] { (model.slug) }
                    }
                } }
                button { "Show" }
            }
            @if let Some(model) = chosen {
                p.hint.above { "Programs that cannot use " (model.slug) " keep their default model." }
            }
            p.hint.above #found role="status" {
                @match count {
                    0 => (NONE),
                    some => { @if some < all.len() { (some) " of " } (all.len()) " programs" }
                }
            }
            // All of them, whatever is looked for: the script shows others without a new page.
            div.programs data-none=(NONE) { @for client in all {
                details name="program" data-name=(name(client)) hidden[!listed(&client)] open[open == Some(client)] {
                    summary { h3 { (client.title) } }
                    (settings(client, public_url, models, chosen))
                }
            } }
        }
    }
}

fn check(checked: Option<&Checked>) -> Markup {
    html! {
        section.card aria-labelledby="test" {
            h2 #test { "Test this key" }
            form #key-test method="post" action="/dashboard/test" {
                label for="key" { "Your key" }
                input #key type="password" name="key" autocomplete="off" spellcheck="false" placeholder="sk-fb-…" aria-describedby="key-hint";
                p.hint #key-hint {
                    "Pasted here, it is also filled into the settings below. It stays in this browser and is not stored. "
                    "Left empty, the key of this page is tested."
                }
                button.primary { "Test this key" }
            }
            p #key-result role="status" class=[checked.map(|checked| if checked.good { "success" } else { "problem" })] {
                @if let Some(checked) = checked { (checked.text) }
            }
        }
    }
}

/// What is folded. It has the program's id, because browsers unfold it for an address that ends with that.
fn settings(
    client: &ClientProgram,
    public_url: &str,
    models: &[Arc<Model>],
    chosen: Option<&Model>,
) -> Markup {
    let chosen = chosen.filter(|model| client.reaches(model));
    let model = chosen.or_else(|| client.usual_model(models.iter().map(AsRef::as_ref)));
    html! {
        div id=(client.id) {
            p { (client.note) }
            @for block in &client.block {
                figure {
                    figcaption { (block.place) }
                    pre tabindex="0" role="region" aria-label=(format!("{}: {}", client.title, block.place)) { code { (filled(block, &client.base_url(public_url), model)) } }
                }
            }
            @if let (Some(empty), Some(busy), Some(broken)) = (&client.empty, &client.busy, &client.broken) {
                p.hint {
                    "It gave up after " (empty) " with an empty balance, after " (busy) " with an overloaded provider, and after "
                    (broken) " when every stream broke."
                }
            }
        }
    }
}

/// The text with the key's positions marked, so that the browser can fill them in.
fn filled(block: &SetupBlock, base_url: &str, model: Option<&Model>) -> Markup {
    let slug = model.map_or(setup::MODEL, |model| &model.slug);
    let text = block.fill(base_url, setup::KEY, slug, model);
    let mut pieces = text.split(setup::KEY);
    let first = pieces.next().unwrap_or_default();
    html! { (first) @for piece in pieces { span.key { (setup::KEY) } (piece) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(find: &str) -> Vec<&'static str> {
        let query = SetupQuery {
            find: find.to_owned(),
            ..SetupQuery::default()
        };
        let all = setup::clients().iter();
        let found = all.filter(|client| query.finds(client));
        found.map(|client| client.id.as_str()).collect()
    }

    #[test]
    fn a_program_is_found_by_part_of_its_name() {
        assert_eq!(found("").len(), setup::clients().len());
        assert_eq!(found("codex"), ["codex"]);
        assert_eq!(found(" AI-sdk "), found("aisdk"));
        assert!(found("aisdk").contains(&"ai-sdk"));
        assert_eq!(found("open code"), ["opencode"]);
        assert_eq!(found("python openai").first(), Some(&"openai-python"));
        assert!(found("no such program").is_empty());
    }

    #[test]
    fn exactly_one_program_is_unfolded() {
        let drawn = |find: &str, program: &str| {
            let query = SetupQuery {
                find: find.to_owned(),
                program: program.to_owned(),
                ..SetupQuery::default()
            };
            programs("https://a.example", &[], &query).into_string()
        };
        let all = setup::clients().len();
        for (find, program, listed, open) in [
            ("", "", all, setup::clients()[0].title.as_str()),
            ("", "codex", all, "Codex CLI"),
            ("", "emacs", all, setup::clients()[0].title.as_str()),
            ("codex", "curl", 1, "Codex CLI"),
            ("emacs", "", all, setup::clients()[0].title.as_str()),
        ] {
            let page = drawn(find, program);
            let case = format!("{find:?}, {program:?}");
            let hidden = page.matches(" hidden><summary>").count();
            let programs = page.matches("<details name=\"program\"").count();
            assert_eq!((programs, programs - hidden), (all, listed), "{case}");
            let unfolded: Vec<&str> = page.split(" open><summary><h3>").skip(1).collect();
            assert_eq!(unfolded.len(), 1, "{case}");
            assert!(unfolded[0].starts_with(open), "{case}");
            assert_eq!(
                page.matches(NONE).count(),
                if find == "emacs" { 2 } else { 1 },
                "{case}"
            );
        }
        let hostile = drawn("\"><script>", "\"><script>");
        assert!(!hostile.contains("<script>"), "{hostile}");
    }
}
