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

/// The result of checking the key.
#[derive(Debug)]
pub(in crate::customer) struct Checked {
    pub(in crate::customer) good: bool,
    pub(in crate::customer) text: String,
}

/// The view. It never contains the key itself: the browser replaces the placeholder, if at all.
pub(in crate::customer) fn page(
    public_url: &str,
    models: &[Arc<Model>],
    chosen: Option<&Model>,
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
        (choose(models, chosen))
        nav.card aria-labelledby="programs" {
            h2 #programs { "Programs" }
            ul.programs { @for client in setup::clients() { li { a href=(format!("#{}", client.id)) { (client.title) } } } }
        }
        @for client in setup::clients() { (settings(client, public_url, models, chosen)) }
    }
}

/// The choice of the model in the settings. A form that works without a script.
fn choose(models: &[Arc<Model>], chosen: Option<&Model>) -> Markup {
    html! {
        section.card aria-labelledby="choice" {
            h2 #choice { "Model" }
            form.inline method="get" action="/dashboard/setup" {
                div { label for="model" { "Model in the settings below" } select #model name="model" {
                    option value="" { "the default of each program" }
                    @for model in models {
                        option value=(model.slug) selected[chosen.is_some_and(|chosen| chosen.slug == model.slug)] { (model.slug) }
                    }
                } }
                button { "Show" }
            }
            @if let Some(model) = chosen {
                p.hint { "Programs that cannot use " (model.slug) " keep their default model." }
            }
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

fn settings(
    client: &ClientProgram,
    public_url: &str,
    models: &[Arc<Model>],
    chosen: Option<&Model>,
) -> Markup {
    let chosen = chosen.filter(|model| client.reaches(model));
    let model = chosen.or_else(|| client.usual_model(models.iter().map(AsRef::as_ref)));
    html! {
        section.card aria-labelledby=(client.id) {
            h2 id=(client.id) { (client.title) }
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
