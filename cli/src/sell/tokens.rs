//! `farebox tokens …`: who may use the admin API. Works while a gateway runs; only commands make and revoke tokens.

use farebox_ledger::{
    Ledger, LedgerError, OpenMode, Outcome, Perform as _, Token, TokenDay, TokenToday, UtcDay,
};
use serde_json::{Value, json};

use super::acts::ask;
use crate::args::tokens::{OneToken, TokensCommand};
use crate::args::{Args, OutputFormat};
use crate::books::open;
use crate::output::{self, CommandFailed};
use crate::tables;
use farebox::clock;
use farebox_selling::NewSecret;
use farebox_selling::token::{self, CreateToken, StopToken};

/// The columns of a token.
const HEADER: [&str; 7] = [
    "token", "label", "role", "daily", "today", "expires", "status",
];

pub(crate) async fn run(args: &Args, command: &TokensCommand) -> Result<(), CommandFailed> {
    match command {
        TokensCommand::Create(options) => create(args, options).await,
        TokensCommand::List => list(args).await,
        TokensCommand::Revoke(one) => revoke(args, one).await,
    }
}

async fn create(args: &Args, new: &CreateToken) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let done = ask(args, &ledger, new.clone(), ()).await?;
    if args.format() == OutputFormat::Json {
        output::print_json(&done.document());
        return Ok(());
    }
    let (Outcome::Token(token), Some(NewSecret::Token(secret))) = (done.outcome, done.shown_once)
    else {
        return Ok(());
    };
    let expires_at = token.expires_at;
    print(args, &[with_day(*token, &[])]);
    output::print(&format!("\nsecret  {}", secret.reveal()));
    output::note(
        "The secret is shown only now and is not stored; give it to the program that uses it.",
    );
    if let Some(end) = expires_at {
        output::note(&format!("The token expires at {end}."));
    }
    Ok(())
}

async fn list(args: &Args) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::ReadOnly).await?;
    let (tokens, days) = (ledger.all::<Token>().await?, days(&*ledger).await?);
    let tokens: Vec<TokenAndDay> = (tokens.into_iter())
        .map(|token| with_day(token, &days))
        .collect();
    match args.format() {
        OutputFormat::Json => {
            let tokens: Vec<Value> = tokens.iter().map(document).collect();
            output::print_json(&json!({ "tokens": tokens }));
        }
        format if tokens.is_empty() && format != OutputFormat::Csv => output::note(
            "There are no tokens yet. Create one: farebox tokens create LABEL --role sell --daily 200",
        ),
        _ => print(args, &tokens),
    }
    Ok(())
}

async fn revoke(args: &Args, one: &OneToken) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let done = ask(args, &ledger, StopToken {}, one.id).await?;
    let Outcome::Token(token) = done.outcome else {
        return Ok(());
    };
    let token = with_day(*token, &days(&*ledger).await?);
    if args.format() == OutputFormat::Json {
        output::print_json(&document(&token));
    } else {
        print(args, &[token]);
    }
    Ok(())
}

/// A token, and what it did today.
type TokenAndDay = (Token, TokenToday);

/// What all tokens did lately.
async fn days(ledger: &dyn Ledger) -> Result<Vec<TokenDay>, LedgerError> {
    let today = UtcDay::of(clock::now());
    ledger.token_days(TokenToday::since(today)).await
}

fn with_day(token: Token, days: &[TokenDay]) -> TokenAndDay {
    let today = TokenToday::of(token.id, UtcDay::of(clock::now()), days);
    (token, today)
}

fn document((token, today): &TokenAndDay) -> Value {
    token::document(token, today, clock::now())
}

/// Prints tokens; not as JSON.
fn print(args: &Args, tokens: &[TokenAndDay]) {
    let now = clock::now();
    let row = |(token, today): &TokenAndDay| {
        vec![
            token.id.to_string(),
            output::plain(&token.label),
            token.role.to_string(),
            token
                .daily
                .map_or_else(|| "none".to_owned(), |daily| daily.to_string()),
            today.day.booked.to_string(),
            token
                .expires_at
                .map_or_else(|| "never".to_owned(), |at| at.to_string()),
            token.status(now).to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = tokens.iter().map(row).collect();
    tables::print(args.format(), &HEADER, &rows);
}
