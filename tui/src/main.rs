//! The admin console of Farebox: opens the ledger itself, shows balances and tops them up.
//!
//! One loop: an event of the terminal or a message of the store becomes an action, `App::update` changes the state and requests
//! effects, and the screen is drawn when something on it changed. State never draws, views never fetch, and only `store` talks to
//! the ledger and to the gateway's admin listener.

mod acts;
mod admin;
mod app;
mod background;
mod clock;
#[path = "../../cli/src/env_file.rs"]
mod env_file;
mod field;
mod format;
mod input;
mod manual;
mod plan;
mod sanitize;
mod state_file;
mod store;
mod term;
#[cfg(test)]
mod tests;
#[path = "../../cli/src/tls.rs"]
mod tls;
mod view;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use crossterm::event::{Event, EventStream};

use farebox_ledger::{LedgerAddress, OpenMode, Opening, parse_public_url};
use futures_util::StreamExt as _;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::Instant;

use admin::TokenSource;
use app::message::{Effect, Message};
use app::modal::Modal;
use app::{Action, ConsoleApp, Options};
use background::{AnswerFilter, ThemeChoice};
use state_file::StateFile;
use store::StoreHandle;
use term::Term;
use view::{Spots, Theme};

/// Balances, top-ups and everything about keys, in a terminal. Works with and without a running gateway.
#[derive(Debug, Parser)]
#[command(name = "farebox-console", version = env!("FAREBOX_VERSION"))]
struct ConsoleArgs {
    /// The ledger, which must exist: one SQLite file, or a postgres:// address.
    #[arg(
        long,
        env = "FAREBOX_LEDGER",
        hide_env_values = true,
        default_value = "farebox.db",
        value_name = "PATH"
    )]
    ledger: LedgerAddress,
    /// A file of NAME=value lines, as a unit's EnvironmentFile; what the environment already has stays.
    #[arg(long, value_name = "FILE")]
    env_file: Option<PathBuf>,
    /// The gateway's admin listener, for live traffic, routes and configuration.
    #[arg(
        long,
        env = "FAREBOX_ADMIN",
        default_value = "http://127.0.0.1:9090",
        value_name = "URL"
    )]
    admin: String,
    /// A file with the token that the admin listener requires when it is not on loopback; there the gateway writes one of its own.
    #[arg(long, env = "FAREBOX_ADMIN_TOKEN_FILE", value_name = "FILE")]
    admin_token_file: Option<PathBuf>,
    /// The --state file of a gateway whose ledger is in a database: beside it stands its own token.
    #[arg(long, env = "FAREBOX_STATE", value_name = "FILE")]
    state: Option<PathBuf>,
    /// The certificate of an admin listener that speaks TLS, PEM: exactly this one is trusted.
    #[arg(long, env = "FAREBOX_ADMIN_TLS_CERT", value_name = "FILE")]
    admin_tls_cert: Option<PathBuf>,
    /// The base of the settings and links that are shown; by default the running gateway's, else http://127.0.0.1:8080.
    #[arg(long, env = "FAREBOX_PUBLIC_URL", value_name = "URL", value_parser = parse_public_url)]
    public_url: Option<String>,
    /// Your name for the audit, which adds the system user; by default the user who called sudo.
    #[arg(long, env = "FAREBOX_OPERATOR", value_name = "NAME")]
    operator: Option<String>,
    /// Use a database that confirms what no standby has: to try things out.
    #[arg(long, env = "FAREBOX_ALLOW_SINGLE")]
    allow_single: bool,
    /// Colours for this terminal; `auto` asks it for its background. NO_COLOR means none.
    #[arg(long, value_enum, default_value_t, value_name = "THEME")]
    theme: ThemeChoice,
    /// Look, but change nothing.
    #[arg(long)]
    read_only: bool,
    /// Write the manual page and the completions of bash, zsh and fish into this folder, for packages.
    #[arg(long, hide = true, value_name = "FOLDER")]
    manual: Option<PathBuf>,
}

fn main() -> ExitCode {
    let read = |file: &Path| std::fs::read(file).map_err(|error| error.to_string());
    let is_set = |name: &str| std::env::var_os(name).is_some();
    match env_file::load(read, is_set).and_then(|()| run(command_line())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If it cannot be printed either, there is nothing more to do.
            let _ = writeln!(io::stderr(), "farebox-console: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The command line; help, the version or a mistake end the process.
fn command_line() -> ConsoleArgs {
    ConsoleArgs::try_parse().unwrap_or_else(|mut error| {
        // clap repeats a refused value; the address of a database may hold a password.
        if error
            .get(ContextKind::InvalidArg)
            .is_some_and(|arg| arg.to_string().starts_with("--ledger"))
        {
            error.insert(
                ContextKind::InvalidValue,
                ContextValue::String("…".to_owned()),
            );
        }
        error.exit()
    })
}

fn run(args: ConsoleArgs) -> Result<(), String> {
    if let Some(folder) = &args.manual {
        return manual::write(folder).map_err(|error| format!("{}: {error}", folder.display()));
    }
    let token = match &args.admin_token_file {
        Some(path) => TokenSource::Given(
            std::fs::read_to_string(path)
                .map_err(|error| format!("{}: {error}", path.display()))?
                .trim()
                .to_owned(),
        ),
        None => TokenSource::OfGateway(args.ledger.clone(), args.state.clone()),
    };
    let client = admin::AdminClient::new(&args.admin, token, args.admin_tls_cert.clone())
        .map_err(|why| format!("--admin {}: {why}", sanitize::clean(&args.admin)))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let mode = if args.read_only {
            OpenMode::ReadOnly
        } else {
            OpenMode::Write
        };
        let opening = Opening {
            allow_single: args.allow_single,
            ..Opening::new(mode)
        };
        let ledger = args
            .ledger
            .open(&opening)
            .await
            .map_err(|error| error.to_string())?;
        if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
            return Err("the console needs a terminal; in scripts use `farebox keys`".to_owned());
        }
        let (tell, messages) = unbounded_channel();
        let shared: farebox_ledger::SharedLedger = Arc::clone(&ledger) as _;
        let options = options(&args, client.url());
        let store = StoreHandle::new(shared, StateFile::new(&place(&args.ledger)), client, tell);
        let result = console(options, store, messages)
            .await
            .map_err(|error| format!("the terminal failed: {error}"));
        ledger.close();
        result
    })
}

/// Identifies this ledger: its file, or its database without a password.
fn place(ledger: &LedgerAddress) -> PathBuf {
    ledger
        .path()
        .map_or_else(|| PathBuf::from(ledger.to_string()), Path::to_owned)
}

fn options(args: &ConsoleArgs, admin: String) -> Options {
    let named = |name: &String| !name.trim().is_empty();
    let typed = args.operator.clone().filter(named);
    let sudo_user = || std::env::var("SUDO_USER").ok().filter(named);
    Options {
        ledger: place(&args.ledger)
            .file_name()
            .unwrap_or(Path::new("ledger").as_os_str())
            .to_string_lossy()
            .into_owned(),
        admin,
        read_only: args.read_only,
        public_url: args.public_url.clone(),
        theme: match std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) {
            true => args.theme,
            false => ThemeChoice::None,
        },
        operator: farebox_ledger::owner::actor(typed.or_else(sudo_user)),
        random: clock::random_bits,
    }
}

/// The main loop.
async fn console(
    options: Options,
    mut store: StoreHandle,
    mut messages: UnboundedReceiver<Message>,
) -> io::Result<()> {
    let mut term = Term::enter()?;
    // The console of Linux may print the question, and is dark.
    let asked = options.theme == ThemeChoice::Auto
        && std::env::var("TERM").is_ok_and(|term| term != "linux" && term != "dumb");
    if asked {
        term.ask_for_background()?;
    }
    let (mut answer, begun) = (AnswerFilter::new(asked), Instant::now());
    let mut spots = Spots::new();
    let size = term.terminal.size()?;
    let (mut app, first) = ConsoleApp::new(options, (size.width, size.height), clock::now());
    first.into_iter().for_each(|effect| store.handle(effect));
    store.start();
    let mut events = EventStream::new();
    while !app.quit {
        if std::mem::take(&mut app.dirty) {
            let theme = Theme::of(&app);
            term.terminal
                .draw(|frame| spots = view::draw(&app, theme, frame))?;
        }
        let shows_secret = matches!(app.modal, Some(Modal::Secret(_)));
        tokio::select! {
            event = events.next() => {
                let Some(event) = event else { break };
                let (typed, background) = answer.take(event?);
                if let Some(background) = background {
                    update(&mut app, Action::Background(background), &mut store, &mut term)?;
                }
                act_on(&mut app, typed, &spots, &mut store, &mut term)?;
            }
            () = pause(answer.pause()) => {
                let typed = answer.give_up();
                act_on(&mut app, typed, &spots, &mut store, &mut term)?;
            }
            message = messages.recv() => {
                let Some(message) = message else { break };
                update(&mut app, Action::Message(message), &mut store, &mut term)?;
                // Events that arrived together are drawn together.
                for _ in 0..64 {
                    let Ok(message) = messages.try_recv() else { break };
                    update(&mut app, Action::Message(message), &mut store, &mut term)?;
                }
            }
        }
        if shows_secret && !matches!(app.modal, Some(Modal::Secret(_))) {
            term.clear()?;
        }
    }
    // An answer that is still on its way would end up on the user's command line.
    while answer.waits() && begun.elapsed() < ANSWERS_WITHIN {
        let event = tokio::time::timeout(LAST_WAIT, events.next()).await;
        let Ok(Some(Ok(event))) = event else { break };
        answer.take(event);
    }
    Ok(())
}

/// A terminal that has not answered by then does not.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// How long the end of the console waits for it.
const LAST_WAIT: Duration = Duration::from_millis(200);

/// Ends after this time, or never.
async fn pause(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// Acts on what was typed or clicked.
fn act_on(
    app: &mut ConsoleApp,
    typed: Vec<Event>,
    spots: &Spots,
    store: &mut StoreHandle,
    term: &mut Term,
) -> io::Result<()> {
    for event in typed {
        let (first, second) = input::apart(event);
        for event in [Some(first), second].into_iter().flatten() {
            if let Some(action) = input::action(app, spots, &event) {
                update(app, action, store, term)?;
            }
        }
    }
    Ok(())
}

fn update(
    app: &mut ConsoleApp,
    action: Action,
    store: &mut StoreHandle,
    term: &mut Term,
) -> io::Result<()> {
    let mut effects = app.update(action);
    while let Some(effect) = effects.pop() {
        match effect {
            Effect::Copy(text) => {
                term.copy(&text.0)?;
                effects.extend(app.update(Action::Message(Message::Copied)));
            }
            Effect::Mouse(on) => term.mouse(on)?,
            effect => store.handle(effect),
        }
    }
    Ok(())
}
