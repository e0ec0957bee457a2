//! `farebox keys …`: sells, funds and manages keys. Works while a gateway runs.

use farebox_ledger::key::Change;
use farebox_ledger::store::SharedStore;
use farebox_ledger::{
    KeyChange, KeyQuery, KeySettings, KeyStatus, LINK_LIFETIME, LinkToken, Membership, NewKey,
    OpenMode, Secret,
};
use serde_json::json;

use super::args::{Args, CreateOptions, ListOptions, OneKey, OutputFormat, RevokeOptions};
use super::books::{HEADER, act, find, keys_of, open, print_key, print_secret, rows, table};
use super::output::{self, CommandFailed};
use super::{dates, gateway, view};
use crate::clock;
use crate::config::{self, Config, Lookup, ProcessSecrets};
use farebox_ledger::csv;

/// Keys are read from the ledger in pages of this many.
const PAGE: usize = 1_000;

pub(super) async fn create(args: &Args, options: &CreateOptions) -> Result<(), CommandFailed> {
    let settings = settings(options)?;
    let ledger = open_for(args, options).await?;
    warn_of_unknown(args, settings.models.as_deref().unwrap_or_default());
    let (new, secret) = new_key(args, options, settings);
    let key = ledger.create_key(new).await?;
    print_secret(args, &key, &secret);
    dates::note_expiry(options.expires);
    Ok(())
}

/// Opens the ledger in which keys are created.
pub(super) async fn open_for(
    args: &Args,
    options: &CreateOptions,
) -> Result<SharedStore, CommandFailed> {
    let mode = if options.new_ledger {
        OpenMode::Create
    } else {
        OpenMode::Write
    };
    open(args, mode).await
}

/// What the options say of a new key, checked.
pub(super) fn settings(options: &CreateOptions) -> Result<KeySettings, CommandFailed> {
    dates::check_expiry(options.expires)?;
    let models = options.models.as_deref().map(allowed).transpose()?;
    Ok(KeySettings {
        label: options.label.clone().unwrap_or_default(),
        models: models.flatten(),
        expires_at: options.expires,
        rate: options.rate.and_then(|rate| rate.0),
        concurrency: options.concurrency.and_then(|most| most.0),
    })
}

/// A new key with these settings, and the secret that only the caller knows.
pub(super) fn new_key(
    args: &Args,
    options: &CreateOptions,
    settings: KeySettings,
) -> (NewKey, Secret) {
    let id = clock::key_id();
    let secret = Secret::generate(id, clock::random());
    let new = NewKey {
        within: Membership {
            customer: options.customer,
            is_owner: options.owner,
            made_by: None,
        },
        id,
        secret: secret.hash(),
        settings,
        first_credit: options.balance.zip(options.reference.clone()),
        act: act(args),
    };
    (new, secret)
}

pub(super) async fn list(args: &Args, options: &ListOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::ReadOnly).await?;
    let mut query = KeyQuery {
        label: options.label.clone(),
        customer: options.customer,
        now: clock::now(),
        limit: PAGE,
        ..KeyQuery::default()
    };
    let mut keys = Vec::new();
    loop {
        let page = ledger.list_keys(query.clone()).await?;
        query.after = page.last().map(|key| query.order.place(key));
        let whole = page.len() == PAGE;
        keys.extend(page);
        if !whole {
            break;
        }
    }
    match args.format() {
        OutputFormat::Json => output::print_json(
            &json!({ "keys": keys.iter().map(|key| view::key(key, clock::now())).collect::<Vec<_>>() }),
        ),
        OutputFormat::Csv => output::print(&csv::document(&HEADER, &rows(&keys))),
        _ if keys.is_empty() => {
            output::note(
                &match options.label.as_deref().filter(|part| !part.is_empty()) {
                    Some(part) => format!("No label contains {part:?}."),
                    None => "There are no keys yet. Create one: farebox keys create --label NAME"
                        .to_owned(),
                },
            )
        }
        _ => output::print(&table(&keys)),
    }
    Ok(())
}

pub(super) async fn change(args: &Args, one: &OneKey, change: Change) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let key = ledger
        .change_key(KeyChange {
            key: one.id,
            change,
            act: act(args),
        })
        .await?;
    print_key(args, &key);
    Ok(())
}

/// Revokes a key. Of an owner's, the keys that it made are told, or revoked first.
pub(super) async fn revoke(args: &Args, options: &RevokeOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let key = find(&*ledger, options.id).await?;
    let mut made = keys_of(&*ledger, key.belongs_to).await?;
    made.retain(|other| other.made_by == Some(key.id) && other.stored_status != KeyStatus::Revoked);
    let ids = made
        .iter()
        .map(|other| other.id)
        .filter(|_| options.with_made);
    let mut revoked = Vec::new();
    for key in ids.chain([key.id]) {
        let change = KeyChange {
            key,
            change: Change::Revoke,
            act: act(args),
        };
        revoked.push(ledger.change_key(change).await?);
    }
    if let Some(key) = revoked.last() {
        print_key(args, key);
    }
    let names: Vec<String> = made.iter().map(|other| other.id.to_string()).collect();
    if options.with_made && !made.is_empty() {
        output::note(&format!("Revoked with it: {}.", names.join(", ")));
    } else if !made.is_empty() {
        output::note(&format!(
            "It made {}, which still work; to revoke them, too: farebox keys revoke {} --with-made",
            names.join(", "),
            key.id
        ));
    }
    Ok(())
}

pub(super) async fn link(args: &Args, one: &OneKey) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let (token, act) = (LinkToken::generate(clock::random()), act(args));
    let expires = LinkToken::expires(act.at);
    ledger
        .create_link(one.id, token.hash(), expires, act)
        .await?;
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

/// The slugs that a key may use, each once; `None` for `all`.
pub(super) fn allowed(typed: &[String]) -> Result<Option<Vec<String>>, CommandFailed> {
    if typed.iter().any(|slug| slug == "all") {
        return if typed.len() == 1 {
            Ok(None)
        } else {
            Err(CommandFailed::usage(
                "--models: write `all` alone, or slugs",
            ))
        };
    }
    let mut slugs: Vec<String> = Vec::with_capacity(typed.len());
    for slug in typed {
        if !slugs.contains(slug) {
            slugs.push(slug.clone());
        }
    }
    Ok(Some(slugs))
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
