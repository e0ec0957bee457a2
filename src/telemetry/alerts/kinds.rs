//! Every kind of alert: what it means, what customers see, and what ends it.
//!
//! The one list. The first paragraph below each alert's heading in `docs/operations.md` and the rules in `deploy/alerts.yml` are written from it
//! (`FAREBOX_BLESS=1 cargo test --test blackbox -- process::alerts`); `/status`, `/metrics`, the log and the console show its words.

use std::fmt::Write as _;

/// How much an alert matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlertSeverity {
    /// Customers are refused now: somebody should get up.
    Page,
    /// Money or service is at risk.
    Warn,
    /// Worth knowing.
    Info,
}

impl AlertSeverity {
    /// One word for documents and labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Warn => "warn",
            Self::Info => "info",
        }
    }
}

/// A kind of alert.
#[derive(Debug, PartialEq, Eq)]
pub struct AlertKind {
    /// Its name in `/status`, log lines, metrics and rules.
    pub id: &'static str,
    /// How much it matters.
    pub severity: AlertSeverity,
    /// What has happened.
    pub means: &'static str,
    /// What customers see of it.
    pub customers: &'static str,
    /// What ends it.
    pub remedy: &'static str,
}

macro_rules! kinds {
    ($($name:ident $id:literal $severity:ident: $means:literal; $customers:literal; $remedy:literal)*) => {
        $(
            #[doc = $means]
            pub static $name: AlertKind = AlertKind {
                id: $id, severity: AlertSeverity::$severity, means: $means, customers: $customers, remedy: $remedy,
            };
        )*
        /// All of them, the most urgent first.
        pub static KINDS: &[&AlertKind] = &[$(&$name),*];
    };
}

kinds! {
    DISK_FULL "disk_full" Page:
        "the ledger's disk has less than 64 MiB left, or nothing; selling has stopped, running requests settle";
        "503 `ledger_unavailable`";
        "free space on the ledger's disk (*When the disk fills*); selling goes on by itself within a second"
    LOG_LIMIT "log_limit" Page:
        "the ledger's log has reached `--wal-limit`, because a program keeps it from being copied; selling has stopped, running requests settle";
        "503 `ledger_unavailable`";
        "end the transaction or the process that the reason names (*When the disk fills*); selling goes on by itself within a second"
    LEDGER_DISPLACED "ledger_displaced" Page:
        "the ledger's path no longer leads to the file that was opened, the file cannot be written, or another version of the program has changed its schema; selling has stopped";
        "503 `ledger_unavailable`";
        "put the ledger back with its `-wal`, or restore a backup (*Back up and restore*), and selling goes on by itself; after another version, start that one"
    LEDGER_STOPPED "ledger_stopped" Page:
        "the ledger's writer has stopped for good; the process exits";
        "503 `ledger_unavailable`";
        "read the last lines of the log, mend the disk, and start the gateway again"
    LEDGER_UNREACHABLE "ledger_unreachable" Page:
        "this gateway cannot reach the database that it shares, or is not let in; selling has stopped here";
        "503 `ledger_unavailable`";
        "the alert's own `remedy`: the server, the network, or what it answers to a new connection (a limit, a password, a certificate)"
    LEDGER_BLOCKED "ledger_blocked" Page:
        "another program or session has locked what commits write; selling has stopped meanwhile";
        "503 `ledger_unavailable` after some seconds";
        "let whoever the reason names finish, or end it; selling goes on at once"
    LEDGER_REFUSED "ledger_refused" Page:
        "the database is reached and refuses to be written: read-only, a right or a time limit";
        "503 `ledger_unavailable`";
        "the alert's own `remedy` names the setting; selling goes on by itself within a second"
    STANDBY_MISSING "standby_missing" Page:
        "what is confirmed would be lost with the database's primary, or has been; selling has stopped";
        "503 `ledger_unavailable`";
        "start the standby, or build a new one with `pg_basebackup`; `docs/FLEET.md`"
    CLOCK_WRONG "clock_wrong" Page:
        "this machine's clock and the database's are 30 s or more apart; selling has stopped here";
        "503 `ledger_unavailable`";
        "set the clock (`timedatectl`, `chronyc tracking`); selling goes on by itself"
    CERTIFICATE_EXPIRED "certificate_expired" Page:
        "the certificate of a listener has expired, or is not valid yet";
        "their programs refuse the connection; for the admin listener yours do";
        "renew it, put the new certificate and its key in the place of both files, and `systemctl reload farebox` (or SIGHUP)"
    SLUG_DEAD "slug_dead" Page:
        "no target of a published model works";
        "503 (529 on `/native`) `upstream_unavailable` for each request of this model";
        "mend one of its targets (the reason names each), or add another to its route"
    PRICE_LIST_UNKNOWN "price_list_unknown" Page:
        "customers have a price list that this catalog lacks";
        "503 `price_list_unknown`";
        "put the list back, or give them another (`farebox customers set`)"
    ACCOUNT_REFUSED "account_refused" Warn:
        "a provider refuses your account: a wrong key, no money, a quota that is used up";
        "nothing where another target answers, else 503 `upstream_unavailable`";
        "read the reason: replace the key's file, or pay the provider; the gateway asks every 5 s, and its own success ends the alert"
    TARGET_REFUSES "target_refuses" Warn:
        "a provider knows no such path or model, or does not let you use it";
        "nothing where another target answers, else 503 `upstream_unavailable`";
        "compare `base_url` and `model` in `routes.toml` with the provider's own names"
    TARGET_PAUSED "target_paused" Warn:
        "a target is paused for all customers, because it cannot be reached or fails the gateway's own requests";
        "nothing where another target answers, else 503 `upstream_unavailable`";
        "the provider's status page; the target is used again within 5 s of its recovery"
    TARGET_FAILING "target_failing" Warn:
        "tries at a target fail one after the other: five, or three of more than one customer";
        "nothing where another target answers, else 503 `upstream_unavailable`, or streams that break";
        "read the reason; the gateway asks every 5 s, and its own success ends the alert"
    ENDINGS_BREAK "endings_break" Warn:
        "a target repeatedly breaks answers off in the middle";
        "an error inside the stream; they pay for what was delivered";
        "the provider, or the proxy in front of it (its timeouts); until then put another target first in the route"
    MISCOUNT "miscount" Warn:
        "a target repeatedly counts what cannot be, or nothing";
        "charges by the gateway's own count, or bounded ones (`evidence` `local`, `disputed`)";
        "the alert's own `remedy` names the setting"
    LIMIT_EXCEEDED "limit_exceeded" Warn:
        "a target counts more output than the limit that it was sent allows, and you pay what was not held; for seven days more is held there";
        "higher reservations there, and refusals for want of money that come sooner";
        "write `limit = \"text\"` in its `[provider]`, or in the target, if its reasoning comes beside the limit, `limit = \"none\"` if it ignores limits, and compare the provider's bill"
    CLASS_DEARER "class_dearer" Warn:
        "a target serves a dearer class than it is asked for, and you pay the difference";
        "the price of what they asked for";
        "set the tier of the provider's account or project to its standard, or pin it: `pin = { service_tier = \"default\" }`"
    CLASS_UNKNOWN "class_unknown" Warn:
        "a target names the class that it served in a word that is not known, or no longer at all";
        "the price of what they asked for";
        "compare the provider's bill with the charges of this target; look for a new tier in its price list"
    PIN_REFUSED "pin_refused" Warn:
        "a target refuses a field that is pinned; after three customers' refusals its pins rest until the files are loaded again";
        "nothing: the request is repeated without the field";
        "take the field out of `pin` (write `pin = {}` in the target), and set the provider's account to its standard tier"
    OTHER_MODEL "other_model" Warn:
        "a target lets another model make a part of an answer, which is charged at this model's price";
        "the price of the model that they asked for";
        "turn advisors and fallbacks off at the provider, and compare its bill with the charges of this target"
    COST_DIFFERS "cost_differs" Warn:
        "a provider's answers told costs over 2 % off your `cost`, in a day of 100 requests";
        "nothing";
        "correct `cost`"
    COST_DOUBTED "cost_doubted" Warn:
        "answers told costs that are no amount, or over ten times or under a tenth of your `cost`; they are not used";
        "nothing";
        "compare the provider's bill with `cost`"
    CERTIFICATE_NAME "certificate_name" Warn:
        "the certificate of a listener is for another name than `--public-url` or `--admin-host` gives";
        "their programs refuse the connection; for the admin listener yours do";
        "get a certificate for this name, or give the name that it is for"
    CERTIFICATE_ENDS "certificate_ends" Warn:
        "the certificate of a listener ends within 14 days";
        "nothing, until then";
        "renew it, put the new certificate and its key in the place of both files, and `systemctl reload farebox` (or SIGHUP)"
    CERTIFICATE_REJECTED "certificate_rejected" Warn:
        "new files of a certificate were not taken: they are damaged, or the key is another certificate's; the old certificate is shown";
        "nothing, until the old certificate ends";
        "put the certificate and its own key in the place of both files, and `systemctl reload farebox` (or SIGHUP)"
    EDIT_REJECTED "edit_rejected" Warn:
        "the saved files have mistakes and are not in force; the last good ones are";
        "nothing: models and prices as before the edit";
        "`farebox check` shows each mistake with its line; save the files again"
    PRICE_FELL "price_fell" Warn:
        "a saved catalog lowered a price by more than half, and is in force";
        "the new price, from the next request on";
        "undo the change if it is a mistake; it ends when the price changes again, or after a day"
    PLAN_DEAD "plan_dead" Warn:
        "all models of a plan are retired";
        "the plan is not sold, and what they have of it pays for nothing";
        "name published slugs in its `models`, or in the `use` of one; give another one to who has it (`farebox plans list --plan NAME`)"
    WEBHOOK_DISABLED "webhook_disabled" Warn:
        "a webhook gets no more events: it answered 410, or an event did not arrive in ten tries over three days";
        "nothing; your own programs no longer hear of payments and balances";
        "mend the receiver, then `farebox events replay URL`: what it missed is delivered again"
    WEBHOOK_FAILING "webhook_failing" Warn:
        "a webhook has failed for an hour; each event is tried ten times in three days, then the webhook gets no more";
        "nothing; your own programs hear of payments and balances late";
        "mend the receiver (the reason is its last answer), then `farebox events replay URL`: what waits is delivered at once"
    PAYMENT_UNAPPLIED "payment_unapplied" Warn:
        "a payment came, or went back, that could not be booked: a closed or suspended customer, the highest balance, a token's daily bound, another sum than was asked";
        "money that they paid and do not have, or have and was paid back";
        "the reason says why: `farebox customers unapplied assign REFERENCE --to CUSTOMER`, or send it back and `… return`; what went back: `farebox customers reverse`"
    TOKEN_NEAR_DAILY "token_near_daily" Warn:
        "a token of the admin API has done 80 % or more of what it may in this UTC day: credit, customers, keys, reversals; beyond it, payments are not booked";
        "nothing yet; beyond the bound, money that they paid and do not have";
        "if the sales are real, make a token with a higher `--daily` and give it to the program; if not, `farebox tokens revoke`"
    UNRESOLVED "unresolved" Warn:
        "settlements wait for the ledger";
        "money stays held until they are written";
        "the log says why; they are tried until they are written, at the next start at the latest"
    LEDGER_SLOW "ledger_slow" Warn:
        "a commit, or a sync of the ledger's log, has been under way for more than a second, and nobody is in its way";
        "nothing, answers that begin late, or 503 `ledger_unavailable` if it lasts";
        "the disk of the ledger or of its database, which the reason names (`iostat -x 1`)"
    LEDGER_IMPAIRED "ledger_impaired" Warn:
        "a part of the ledger's work fails or waits, while selling goes on: a customer that is locked, a payment, a new connection";
        "503 `ledger_unavailable` for what it is about";
        "the alert's own `remedy`"
    CLOCK_JUMPED "clock_jumped" Warn:
        "this machine's clock jumped by 30 s or more";
        "keys, caps and dates that follow the new time";
        "if it is wrong now, set it; else nothing: it ends by itself after ten minutes"
    LOG_GROWS "log_grows" Warn:
        "a program has had a transaction of the ledger open for so long that the log has grown to 64 MiB; it grows with each request";
        "nothing until it reaches `--wal-limit`";
        "end the transaction or the process that the reason names (*When the disk fills*)"
    SINGLE "single" Warn:
        "`--allow-single`: no standby has what is confirmed";
        "nothing, until the database is lost";
        "for trials only: give the database a synchronous standby, and start without `--allow-single`"
    STALE_SERVER "server" Warn:
        "a server of the database takes writes although another one is used";
        "nothing, as long as no gateway is led to it";
        "stop it and rebuild it as a standby; `docs/FLEET.md`"
    CONFIGURATION_DIFFERS "configuration_differs" Warn:
        "the gateways of this ledger run different files";
        "models and prices that depend on the gateway they reach";
        "give all of them the same catalog and routes; Nodes in the console shows each gateway's digest"
    LOG_HELD "log_held" Info:
        "a program has had a transaction of the ledger open for 10 s or longer, so that the log grows with each request";
        "nothing";
        "a backup or a verification ends by itself; end an operator's forgotten shell: the reason names the process"
    EXPOSURE_LIMIT "exposure_limit" Info:
        "too much of a key's last 24 hours or 30 days was not paid for; it gets nothing more until that has passed";
        "429 `exposure_limit`, with the minutes until it is served again";
        "look at its requests, and block it if it is abused"
    TARGET_PAUSED_FOR "target_paused_for" Info:
        "a target is paused for single customers, whose own requests failed there";
        "these customers: the next target, else 503 `upstream_unavailable`";
        "read the reason: one customer's requests may cause it; one of them in 5 s tries the target again"
}

/// The table of `docs/operations.md`.
pub fn table() -> String {
    let mut table =
        "| alert | severity | what it means | what customers see | what to do |\n|---|---|---|---|---|\n"
            .to_owned();
    for kind in KINDS {
        let (
            severity,
            AlertKind {
                id,
                means,
                customers,
                remedy,
                ..
            },
        ) = (kind.severity.name(), kind);
        let _ = writeln!(
            table,
            "| `{id}` | {severity} | {means} | {customers} | {remedy} |"
        );
    }
    table
}

/// The rules for Prometheus.
pub fn rules() -> String {
    let mut rules = String::new();
    for kind in KINDS {
        let (name, severity, id) = (rule_name(kind.id), kind.severity.name(), kind.id);
        let [means, remedy] = [kind.means, kind.remedy].map(|text| text.replace('"', "\\\""));
        let _ = write!(
            rules,
            "      - alert: {name}\n        expr: farebox_alert{{kind=\"{id}\"}} == 1\n        labels: {{ severity: {severity} }}\n        \
             annotations:\n          summary: \"{{{{ $labels.instance }}}} {{{{ $labels.subject }}}}: {means}\"\n          \
             remedy: \"{remedy}\"\n\n"
        );
    }
    rules.truncate(rules.trim_end().len());
    rules.push('\n');
    rules
}

/// `disk_full` as rules are named: `FareboxDiskFull`.
fn rule_name(id: &str) -> String {
    let words = id.split('_').map(|word| {
        let (first, rest) = word.split_at(1);
        first.to_ascii_uppercase() + rest
    });
    format!("Farebox{}", words.collect::<String>())
}
