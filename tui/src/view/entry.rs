//! The facts of one entry on its page: a payment, or a request with its end, what served it and each line of its bill.

use farebox_ledger::{Amount, Bill, BillLine, CostSource, JournalEntry, Served};

use super::fields::FactList;
use super::theme::Theme;
use crate::format;

/// What it says.
pub(super) fn entry_facts(list: &mut FactList, theme: Theme, entry: &JournalEntry) {
    let whose = entry
        .key
        .map_or_else(|| entry.customer.to_string(), |key| key.to_string());
    list.plain("Key", &format!("{whose} · its entry {}", entry.seq));
    list.plain("Ended", &format!("{} UTC", format::stamp(entry.at)));
    let (amount, after) = (entry.amount, entry.balance_after);
    list.plain("Amount", &format!("{amount} USD, balance after it {after}"));
    match &entry.bill {
        Some(bill) => bill_facts(list, theme, bill),
        None => payment_facts(list, entry),
    }
}

/// An entry that no request made.
fn payment_facts(list: &mut FactList, entry: &JournalEntry) {
    let kind = format::kind(entry.kind);
    list.plain("Kind", &format!("{kind} by {}", entry.actor));
    list.plain("Reference", entry.reference.as_deref().unwrap_or("—"));
    list.plain("Reason", entry.reason.as_deref().unwrap_or("—"));
    if let Some(request) = entry.refunds {
        list.plain("Gives back", &format!("req_{request}"));
    }
}

/// A request's end and each line of its bill.
fn bill_facts(list: &mut FactList, theme: Theme, bill: &Bill) {
    list.plain("Model", &format!("{} · path {}", bill.slug, bill.family));
    let target = match bill.target.as_str() {
        "" => "none was reached",
        target => target,
    };
    list.plain("Target", target);
    let served = served(&bill.served);
    if !served.is_empty() {
        list.plain("Served as", &served);
    }
    let first = bill
        .first_byte_ms
        .map_or_else(|| "no".to_owned(), |ms| format::span(ms.into()));
    let whole = format::span(bill.total_ms.into());
    let (status, reason) = (bill.status, &bill.end_reason);
    let ending = format!("{status} {reason} · first byte {first}, whole {whole}");
    list.plain("Ending", &ending);
    let counted = bill.counted_by().map_or(
        "not counted: nothing was produced",
        farebox_ledger::document::evidence,
    );
    list.plain("Counted by", counted);
    list.plain("Held", &format!("{} USD", bill.hold));
    if bill.exposure.is_positive() {
        let exposure = bill.exposure;
        let text = format!("{exposure} USD more may be billed to the operator");
        list.plain("Exposure", &text);
    }
    if let Some(cost) = bill.cost {
        list.plain("Cost", &format!("{cost} USD at the operator's own prices"));
    }
    if let Some(cost) = bill.provider_cost {
        let used = match bill.cost_source {
            CostSource::Told => ", which counts",
            CostSource::Listed | CostSource::Doubted => "",
        };
        let text = format!("its answer says that it costs {cost} USD{used}");
        list.plain("Provider", &text);
    }
    if bill.loss.is_positive() {
        let loss = bill.loss;
        let text = format!("{loss} USD: the operator's loss, because the key had no more");
        list.plain("Loss", &text);
    }
    bill_lines(list, theme, bill);
}

/// What makes up the charge.
fn bill_lines(list: &mut FactList, theme: Theme, bill: &Bill) {
    let what = |line: &BillLine| match &line.class {
        Some(class) => format!("{} {class}", line.what),
        None => line.what.to_string(),
    };
    let wide = bill.lines.iter().map(|line| what(line).len());
    let wide = wide.max().unwrap_or_default().max(14);
    for (index, line) in bill.lines.iter().enumerate() {
        let cost = Amount::times(line.rate, line.count)
            .map_or_else(|| "?".to_owned(), |cost| cost.to_string());
        let count = format::count(line.count);
        let what = what(line);
        let text = format!("{what:<wide$} {count:>11} × {} = {cost}", line.rate);
        list.plain(if index == 0 { "Bill" } else { "" }, &text);
    }
    if bill.lines.is_empty() {
        list.styled("Bill", "free", theme.good());
    }
}

/// What an answer was served as, apart from what is ordinary.
fn served(served: &Served) -> String {
    let Served {
        context_band,
        account,
        ..
    } = served;
    let words = [
        served.class().map(str::to_owned),
        (*context_band > 0).then(|| format!("price tier {context_band}")),
        (!account.is_empty()).then(|| format!("account {account}")),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
