//! `farebox check --online`: asks every target once, tries what services do with limits and closed streams, and says what customers would
//! have met.

use std::io::{BufRead, IsTerminal, Write};
use std::sync::Arc;

use farebox_ledger::Amount;

use crate::output::{self, CommandFailed};
use farebox::config::{Code, Config, Diagnostic};
use farebox::upstream::online::{self, OnlineFault, OnlineFinding};
use farebox::upstream::trial::{self, TrialFinding, TrialShown, Tried};
use farebox::upstream::{Organisations, Upstreams};

/// What was found, after the price was said and, on a terminal, agreed to.
pub(crate) async fn findings(config: &Config) -> Result<Vec<Diagnostic>, CommandFailed> {
    let (asked, mut trials) = (online::questions(config), trial::trials(config));
    if asked.is_empty() {
        output::note("online: no target to ask, all are simulated");
        return Ok(Vec::new());
    }
    let prices = asked.iter().map(|one| one.most);
    let prices = prices.chain(trials.iter().map(|trial| trial.most));
    let most = Amount::checked_sum(prices).unwrap_or_default();
    let mut requests = output::count(asked.len(), "smallest request");
    if !trials.is_empty() {
        let of_services = output::count(trials.len(), "trial");
        requests.push_str(&format!(" and {of_services} of limits and closed streams"));
    }
    output::note(&format!(
        "online: {requests} to your providers, for at most {most} USD of your own money there"
    ));
    if !agreed()? {
        return Err(CommandFailed::refused("nothing was asked"));
    }
    let upstreams = Arc::new(Upstreams::new(config).map_err(CommandFailed::refused)?);
    let (found, organisations) = upstreams.examine(asked).await;
    // A target that does not answer shows nothing else either.
    trials.retain(|trial| found.iter().all(|fault| fault.target != trial.target()));
    let tried = upstreams.try_services(trials).await;
    let notes = organisations.iter().map(of_accounts);
    let tried = tried.iter().filter_map(of_service);
    Ok((found.iter().map(finding))
        .chain(notes)
        .chain(tried)
        .collect())
}

/// What a trial shows that nobody has said yet, or that is said otherwise.
fn of_service(found: &TrialFinding) -> Option<Diagnostic> {
    let TrialFinding {
        tried,
        provider,
        target,
        said,
        outcome,
    } = found;
    let (shown, why) = match outcome {
        TrialShown::Yes(why) => (Some(true), why),
        TrialShown::No(why) => (Some(false), why),
        TrialShown::Unclear(why) => (None, why),
    };
    let (what, word) = match (tried, shown) {
        (Tried::Limit, Some(true)) => ("keeps reasoning within an output limit", "limit = \"all\""),
        (Tried::Limit, Some(false)) => ("reasons beyond an output limit", "limit = \"text\""),
        (Tried::Limit, None) => (
            "does not show whether reasoning stays within an output limit",
            "what its reference says: limit = \"all\", \"text\" or \"none\"",
        ),
        (Tried::Stop, Some(true)) => ("stops when its stream is closed", "stops = true"),
        (Tried::Stop, Some(false)) => ("goes on when its stream is closed", "stops = false"),
        (Tried::Stop, None) => (
            "does not show whether it stops when its stream is closed",
            "what its reference says: stops = true or stops = false",
        ),
    };
    let code = match (said, shown) {
        (Some(said), Some(shown)) if *said != shown => Code::WordContradicted,
        // It is as it is said, or nothing says otherwise.
        (Some(_), _) => return None,
        (None, _) => Code::ServiceTried,
    };
    let remedy = format!("write {word} in [provider.{provider}]");
    let message = format!("`{target}` {what}: {why}");
    Some(Diagnostic::without_line(code, message, remedy))
}

/// Which accounts of a provider share a prompt cache.
fn of_accounts(found: &Organisations) -> Diagnostic {
    let Organisations {
        provider,
        known,
        unknown,
    } = found;
    let keys = |keys: &[usize]| {
        let numbers: Vec<String> = keys.iter().map(usize::to_string).collect();
        numbers.join(", ")
    };
    let groups: Vec<String> = known.iter().map(|of_one| keys(of_one)).collect();
    let what = match (known.as_slice(), unknown.as_slice()) {
        ([], _) => "may be of one organisation or of several: its answers do not say".to_owned(),
        ([_], []) => "are of one organisation, so they share a prompt cache".to_owned(),
        (_, []) => format!(
            "are of {} organisations, each with a prompt cache of its own: {}",
            known.len(),
            groups.join("; ")
        ),
        (_, unknown) => format!(
            "share a prompt cache where they are of one organisation: {}; of {} its answers do not say",
            groups.join("; "),
            keys(unknown)
        ),
    };
    let remedy = match (known.as_slice(), unknown.as_slice()) {
        ([_], []) => {
            "`keys_by = \"request\"` divides requests more evenly, and finds as much in the cache"
        }
        _ => {
            "leave `keys_by` at \"conversation\", so that each conversation finds its prompt cached"
        }
    };
    let message = format!("the keys of provider `{provider}` {what}");
    Diagnostic::without_line(Code::Organisations, message, remedy.to_owned())
}

/// A script has agreed by asking for `--online`; a person is asked.
fn agreed() -> Result<bool, CommandFailed> {
    let (stdin, mut stderr) = (std::io::stdin(), std::io::stderr());
    if !stdin.is_terminal() || !stderr.is_terminal() {
        return Ok(true);
    }
    let mut line = String::new();
    let answer = (stderr.write_all(b"Go on? [y/N] "))
        .and_then(|()| stderr.flush())
        .and_then(|()| stdin.lock().read_line(&mut line));
    answer.map_err(|error| CommandFailed::refused(format!("the terminal: {error}")))?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

fn finding(found: &OnlineFinding) -> Diagnostic {
    let OnlineFinding {
        fault,
        slug,
        target,
        reason,
        nearest,
    } = found;
    let provider = target.split('/').next().unwrap_or_default();
    let (code, what, remedy) = match fault {
        OnlineFault::Unreachable => (
            Code::Unreachable,
            format!("provider `{provider}` cannot be reached"),
            "compare the host and port of its `base_url`; then DNS, a proxy or a firewall between".to_owned(),
        ),
        OnlineFault::Path => (
            Code::WrongPath,
            format!("provider `{provider}` knows no such path"),
            "compare its `base_url` with the base of the provider's API, most end in `/v1`; and `speaks` with what it offers".to_owned(),
        ),
        OnlineFault::Model => (
            Code::WrongModel,
            format!("`{target}` is no model that this account may use"),
            match nearest.as_slice() {
                [] => format!("write the provider's own name as `model` in the route of `{slug}`"),
                names => format!("its list of models has {}", names.join(", ")),
            },
        ),
        OnlineFault::Account(refusal) => (
            if refusal.is_about_money() {
                Code::AccountDrained
            } else {
                Code::KeyRefused
            },
            refusal.words(provider),
            refusal.remedy(provider),
        ),
        OnlineFault::Ability(capability) => (
            Code::AbilityMissing,
            format!("`{target}` refuses {}, which `{slug}` is sold with", capability.name()),
            format!(
                "take \"{}\" out of its `capabilities`, or this target out of its route",
                capability.name()
            ),
        ),
        OnlineFault::Busy => (
            Code::NoCapacity,
            format!("`{target}` has no capacity now"),
            "try again later".to_owned(),
        ),
        OnlineFault::Other => (
            Code::TargetFails,
            format!("`{target}` does not answer properly"),
            "read the provider's words; its status page; a proxy in front of it".to_owned(),
        ),
    };
    Diagnostic::without_line(code, format!("{what}: {reason}"), remedy)
}
