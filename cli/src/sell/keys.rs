//! `farebox keys …`: sells, funds and manages keys. Works while a gateway runs.
//!
//! Rows of docs/interface.md: `key_is_shown_once`.

use farebox_ledger::store::SharedStore;
use farebox_ledger::{KeyId, KeyQuery, LINK_LIFETIME, OpenMode};
use serde_json::json;

use super::acts::{ask, print_done};
use crate::args::dates;
use crate::args::{Args, CreateOptions, ListOptions, OnKey, OneKey, OutputFormat};
use crate::books::{self, act, open};
use crate::output::{self, CommandFailed};
use crate::publish::check::warn_of_unknown;
use crate::{gateway, tables};
use farebox::clock;
use farebox_selling::key::{KeyDocument, Revoke, SellKey};
use farebox_selling::link::{self, LinkKind};
use farebox_selling::{NewSecret, reads};

pub(crate) async fn create(args: &Args, options: &CreateOptions) -> Result<(), CommandFailed> {
    // Rows of a document are created elsewhere.
    let Some(key) = options.act.clone() else {
        return Ok(());
    };
    let money = options.money.clone();
    let new = SellKey { key, money };
    new.check()?;
    let expires = new.key.expires_at.map(Into::into);
    let ledger = open_for(args, options).await?;
    warn_of_unknown(args, new.key.models.as_deref().unwrap_or_default());
    print_done(
        args,
        &ask(args, &ledger, new, options.whose.customer).await?,
    );
    dates::note_expiry(expires);
    Ok(())
}

/// Opens the ledger in which keys are created.
pub(crate) async fn open_for(
    args: &Args,
    options: &CreateOptions,
) -> Result<SharedStore, CommandFailed> {
    if options.new_ledger {
        books::create(args).await
    } else {
        open(args, OpenMode::Write).await
    }
}

pub(crate) async fn list(args: &Args, options: &ListOptions) -> Result<(), CommandFailed> {
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
            &json!({ "keys": keys.iter().map(|key| KeyDocument::of(key, clock::now())).collect::<Vec<_>>() }),
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

/// Revokes a key. Of an owner's, the keys that it made are told, or revoked first.
pub(crate) async fn revoke(args: &Args, options: &OnKey<Revoke>) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let made = reads::made_by(&*ledger, options.id).await?;
    let revoke = options.act.clone();
    let with_made = revoke.with_made == Some(true);
    print_done(args, &ask(args, &ledger, revoke, options.id).await?);
    note_made(&made, with_made, &format!("revoke {}", options.id));
    Ok(())
}

/// Names the keys that an owner made, and what became of them.
pub(super) fn note_made(made: &[KeyId], revoked: bool, act: &str) {
    /// Beyond so many, a number says more.
    const NAMED: usize = 20;
    if made.is_empty() {
        return;
    }
    let mut names: Vec<String> = made.iter().take(NAMED).map(ToString::to_string).collect();
    if let Some(more) = made.len().checked_sub(NAMED).filter(|more| *more > 0) {
        names.push(format!("and {more} more"));
    }
    let names = names.join(", ");
    output::note(&if revoked {
        format!("Revoked with it: {names}.")
    } else {
        format!(
            "It made {names}, which still work; to revoke them, too: farebox keys {act} --with-made"
        )
    });
}

pub(crate) async fn link(args: &Args, one: &OneKey) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let (deed, expires) = link::link(one.id, LinkKind::SignIn, act(args));
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
