//! `farebox keys …`: sells, funds and manages keys. Works while a gateway runs.
//!
//! Rows of docs/interface.md: `key_is_shown_once`.

use farebox_ledger::key::Change;
use farebox_ledger::store::SharedStore;
use farebox_ledger::{KeyQuery, KeySettings, LINK_LIFETIME, Membership, OpenMode};
use serde_json::json;

use super::args::{Args, CreateOptions, ListOptions, OneKey, OutputFormat, RevokeOptions};
use super::books::{self, act, open};
use super::done::perform;
use super::output::{self, CommandFailed};
use super::values::Setting;
use super::{dates, gateway, tables, view};
use farebox::clock;
use farebox::config::{self, Config, Lookup, ProcessSecrets};
use farebox::selling::keys::{self, KeyEdit};
use farebox::selling::{Deed, NewSecret, reads};

pub(super) async fn create(args: &Args, options: &CreateOptions) -> Result<(), CommandFailed> {
    let settings = settings(options)?;
    let ledger = open_for(args, options).await?;
    warn_of_unknown(args, settings.models.as_deref().unwrap_or_default());
    perform(args, &ledger, new_key(args, options, settings)).await?;
    dates::note_expiry(options.expires);
    Ok(())
}

/// Opens the ledger in which keys are created.
pub(super) async fn open_for(
    args: &Args,
    options: &CreateOptions,
) -> Result<SharedStore, CommandFailed> {
    if options.new_ledger {
        books::create(args).await
    } else {
        open(args, OpenMode::Write).await
    }
}

/// What the options say of a new key, checked.
pub(super) fn settings(options: &CreateOptions) -> Result<KeySettings, CommandFailed> {
    dates::check_expiry(options.expires)?;
    let edit = KeyEdit {
        label: options.label.clone(),
        models: options.models.clone(),
        expires: Some(Setting(options.expires)),
        rate: options.rate,
        concurrency: options.concurrency,
    };
    edit.over(&KeySettings::default()).map_err(flag)
}

/// What is wrong with the flag that sets it.
pub(super) fn flag(why: String) -> CommandFailed {
    CommandFailed::usage(format!("--{why}"))
}

/// A new key with these settings.
pub(super) fn new_key(args: &Args, options: &CreateOptions, settings: KeySettings) -> Deed {
    let within = Membership {
        customer: options.customer,
        is_owner: options.owner,
        made_by: None,
    };
    let first_credit = options.balance.zip(options.reference.clone());
    keys::create(settings, within, first_credit, act(args))
}

pub(super) async fn list(args: &Args, options: &ListOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::ReadOnly).await?;
    let query = KeyQuery {
        label: options.label.clone(),
        customer: options.customer,
        now: clock::now(),
        ..KeyQuery::default()
    };
    let keys = reads::all_keys(&*ledger, query).await?;
    match args.format() {
        OutputFormat::Json => output::print_json(
            &json!({ "keys": keys.iter().map(|key| view::key(key, clock::now())).collect::<Vec<_>>() }),
        ),
        format if keys.is_empty() && format != OutputFormat::Csv => {
            output::note(
                &match options.label.as_deref().filter(|part| !part.is_empty()) {
                    Some(part) => format!("No label contains {part:?}."),
                    None => "There are no keys yet. Create one: farebox keys create --label NAME"
                        .to_owned(),
                },
            )
        }
        format => tables::print(format, &tables::KEY, &tables::keys(&keys)),
    }
    Ok(())
}

pub(super) async fn change(args: &Args, one: &OneKey, change: Change) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let changed = keys::change(one.id, change, act(args));
    perform(args, &ledger, changed).await.map(drop)
}

/// Revokes a key. Of an owner's, the keys that it made are told, or revoked first.
pub(super) async fn revoke(args: &Args, options: &RevokeOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let made = keys::made_by(&*ledger, options.id).await?;
    for key in made.iter().filter(|_| options.with_made) {
        let revoked = keys::change(*key, Change::Revoke, act(args));
        revoked.perform(&*ledger).await?;
    }
    let revoked = keys::change(options.id, Change::Revoke, act(args));
    perform(args, &ledger, revoked).await?;
    let names: Vec<String> = made.iter().map(ToString::to_string).collect();
    if options.with_made && !made.is_empty() {
        output::note(&format!("Revoked with it: {}.", names.join(", ")));
    } else if !made.is_empty() {
        output::note(&format!(
            "It made {}, which still work; to revoke them, too: farebox keys revoke {} --with-made",
            names.join(", "),
            options.id
        ));
    }
    Ok(())
}

pub(super) async fn link(args: &Args, one: &OneKey) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let (deed, expires) = keys::link(one.id, act(args));
    let done = deed.perform(&*ledger).await?;
    let Some(NewSecret::Link(token)) = done.shown_once else {
        return Ok(());
    };
    let link = token.url(&gateway::public_url(args).await);
    match args.format() {
        OutputFormat::Json => {
            output::print_json(&json!({ "key": one.id, "link": link, "expires_at": expires }))
        }
        _ => {
            output::print(&link);
            output::note(&format!(
                "The link signs in once, within {LINK_LIFETIME}. Anyone who has it can see this key's account: give it only to the customer."
            ));
        }
    }
    Ok(())
}

/// Warns about slugs that the catalog does not publish. Not an error: a model may be published after its keys are sold.
pub(super) fn warn_of_unknown(args: &Args, slugs: &[String]) {
    if slugs.is_empty() {
        return;
    }
    let (config, _) = config::load_files(
        &args.catalog,
        &args.routes,
        &ProcessSecrets { lenient: true },
    );
    let Some(Config { catalog, .. }) = config else {
        return;
    };
    for slug in slugs
        .iter()
        .filter(|slug| catalog.get(slug).is_none_or(|model| model.slug != **slug))
    {
        let shown = output::plain(slug);
        output::note(&match catalog.find(slug) {
            Lookup::Found(model) => {
                format!(
                    "warning: `{shown}` is an alias; write the slug, `{}`",
                    model.slug
                )
            }
            Lookup::Unknown(near) if !near.is_empty() => {
                format!(
                    "warning: the catalog does not publish `{shown}`; did you mean `{}`?",
                    near[0]
                )
            }
            _ => format!(
                "warning: the catalog does not publish `{shown}`; `farebox models` lists what it does"
            ),
        });
    }
}
