//! An entry as every program writes it: one JSON document, or one row of a spreadsheet. The names are stable because scripts read
//! them; new columns come last because scripts count them.

use serde_json::{Value, json};

use crate::{Amount, Bill, BillLine, EntryKind, Evidence, JournalEntry, MoneyPart, OperationId};

/// A request id as customers see it.
pub fn request_id(id: OperationId) -> String {
    format!("req_{id}")
}

/// One journal entry as JSON, for operators. `served`, `exposure`, `cost`, `listed_cost`, `provider_cost`, `facts` and `parts`
/// are left out when empty (`listed_cost` is there beside a told one); a part without a grant is the balance's own.
pub fn json(entry: &JournalEntry) -> Value {
    let mut fields = json!({
        "seq": entry.seq,
        "key": entry.key,
        "kind": entry.kind,
        "amount": entry.amount,
        "balance_after": entry.balance_after,
        "request_id": entry.request().map(request_id),
        "slug": null, "usage": null, "lines": null, "hold": null, "loss": null, "evidence": null,
        "reference": entry.reference,
        "reason": entry.reason,
        "actor": entry.actor,
        "at": entry.at,
        "customer": entry.customer,
    });
    if let (false, Some(fields)) = (entry.parts.is_empty(), fields.as_object_mut()) {
        let part = |part: &MoneyPart| json!({ "grant": part.grant, "amount": part.amount });
        let parts: Vec<_> = entry.parts.iter().map(part).collect();
        fields.insert("parts".to_owned(), json!(parts));
    }
    let (Some(bill), Some(fields)) = (&entry.bill, fields.as_object_mut()) else {
        return fields;
    };
    let of_bill = json!({
        "slug": bill.slug,
        "usage": bill.usage,
        "lines": bill.lines,
        "hold": bill.hold,
        "loss": bill.loss,
        "evidence": bill.counted_by().map(evidence),
        "family": bill.family,
        "target": bill.target,
        "status": bill.status,
        "end_reason": bill.end_reason,
        "first_byte_ms": bill.first_byte_ms,
        "total_ms": bill.total_ms,
        "answer_id": bill.answer_id,
    });
    if let Value::Object(of_bill) = of_bill {
        fields.extend(of_bill);
    }
    if !bill.served.is_ordinary() {
        fields.insert("served".to_owned(), json!(bill.served));
    }
    if bill.exposure != Amount::ZERO {
        fields.insert("exposure".to_owned(), json!(bill.exposure));
    }
    let listed = bill.cost.filter(|_| bill.told_cost().is_some());
    for (name, cost) in [
        ("cost", bill.own_cost()),
        ("listed_cost", listed),
        ("provider_cost", bill.provider_cost),
    ] {
        if let Some(cost) = cost {
            fields.insert(name.to_owned(), json!(cost));
        }
    }
    fields.insert("cost_source".to_owned(), json!(bill.cost_source()));
    if !bill.facts.is_empty() {
        fields.insert("facts".to_owned(), json!(bill.facts));
    }
    Value::Object(std::mem::take(fields))
}

/// The header of a spreadsheet of entries.
pub const COLUMNS: [&str; 42] = [
    "at",
    "key",
    "seq",
    "kind",
    "amount",
    "balance_after",
    "request_id",
    "slug",
    "family",
    "target",
    "status",
    "end_reason",
    "input",
    "cache_read",
    "cache_write",
    "cache_write_1h",
    "output",
    "reasoning",
    "hold",
    "loss",
    "evidence",
    "reference",
    "actor",
    "reason",
    "images",
    "lines",
    "first_byte_ms",
    "total_ms",
    "exposure",
    "cost",
    "facts",
    "answer_id",
    "tier",
    "place",
    "context_band",
    "account",
    "cache_write_12h",
    "calls",
    "provider_cost",
    "customer",
    "parts",
    "cost_source",
];

/// One journal entry as a row under [`COLUMNS`].
pub fn row(entry: &JournalEntry) -> Vec<String> {
    let mut row = vec![
        entry.at.to_string(),
        entry.key.map(|key| key.to_string()).unwrap_or_default(),
        entry.seq.to_string(),
        kind(entry.kind).to_owned(),
        entry.amount.to_string(),
        entry.balance_after.to_string(),
        entry.request().map(request_id).unwrap_or_default(),
    ];
    match &entry.bill {
        None => row.extend(std::iter::repeat_n(String::new(), 14)),
        Some(bill) => row.extend(request(bill)),
    }
    row.extend(
        [
            entry.reference.clone(),
            Some(entry.actor.clone()),
            entry.reason.clone(),
        ]
        .map(Option::unwrap_or_default),
    );
    match &entry.bill {
        None => row.extend([const { String::new() }; 15]),
        Some(bill) => {
            row.extend(details(bill));
            row.extend(served(bill));
        }
    }
    row.push(entry.customer.to_string());
    row.push(parts(&entry.parts));
    let source = entry.bill.as_ref().map(Bill::cost_source);
    row.push(source.unwrap_or_default().to_owned());
    row
}

/// What was asked for, counted and held.
fn request(bill: &Bill) -> [String; 14] {
    // The pictures have a column among those that came later.
    let [input, read, written, hour, output, reasoning, _] =
        bill.usage.first().map(|count| count.to_string());
    [
        bill.slug.clone(),
        bill.family.clone(),
        bill.target.clone(),
        bill.status.to_string(),
        bill.end_reason.to_string(),
        input,
        read,
        written,
        hour,
        output,
        reasoning,
        bill.hold.to_string(),
        bill.loss.to_string(),
        bill.counted_by().map_or("", evidence).to_owned(),
    ]
}

/// The columns that came later.
fn details(bill: &Bill) -> [String; 8] {
    let millis = |millis: u32| millis.to_string();
    let exposure = (bill.exposure != Amount::ZERO).then(|| bill.exposure.to_string());
    let facts: Vec<String> = bill
        .facts
        .iter()
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    [
        bill.usage.images.to_string(),
        lines(&bill.lines),
        bill.first_byte_ms.map(millis).unwrap_or_default(),
        millis(bill.total_ms),
        exposure.unwrap_or_default(),
        bill.own_cost()
            .map(|cost| cost.to_string())
            .unwrap_or_default(),
        facts.join("; "),
        bill.answer_id.clone().unwrap_or_default(),
    ]
}

/// What it was served as, and what came with that.
fn served(bill: &Bill) -> [String; 7] {
    let Bill { served, usage, .. } = bill;
    let said = bill.provider_cost.map(|cost| cost.to_string());
    [
        served.tier.as_str().to_owned(),
        served.place.as_str().to_owned(),
        served.context_band.to_string(),
        served.account.clone(),
        usage.cache_write_12h.to_string(),
        usage.calls.to_string(),
        said.unwrap_or_default(),
    ]
}

/// The grants that it moved, and the balance beside them.
fn parts(parts: &[MoneyPart]) -> String {
    let part = |part: &MoneyPart| match part.grant {
        Some(grant) => format!("{grant} {}", part.amount),
        None => format!("balance {}", part.amount),
    };
    parts.iter().map(part).collect::<Vec<_>>().join("; ")
}

/// Count × rate of everything that was bought, from which the charge can be recomputed, and at which class's rate.
fn lines(lines: &[BillLine]) -> String {
    let line = |line: &BillLine| {
        let class = line.class.as_ref().map(|class| format!(" ({class})"));
        let class = class.unwrap_or_default();
        format!("{} {} x {}{class}", line.what, line.count, line.rate)
    };
    lines.iter().map(line).collect::<Vec<_>>().join("; ")
}

/// The word for a kind.
pub const fn kind(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::TopUp => "top_up",
        EntryKind::Charge => "charge",
        EntryKind::Refund => "refund",
        EntryKind::Adjust => "adjust",
        EntryKind::Grant => "grant",
        EntryKind::Expired => "expired",
        EntryKind::Void => "void",
        EntryKind::Reversal => "reversal",
        EntryKind::Move => "move",
        EntryKind::WriteOff => "write_off",
        EntryKind::Carry => "carry",
    }
}

/// The word for an evidence.
pub const fn evidence(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Provider => "provider",
        Evidence::Local => "local",
        Evidence::Disputed => "disputed",
        Evidence::Recovered => "recovered",
        Evidence::Learned => "learned",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        CostSource, CustomerId, GrantId, KeyId, Served, ServedRegion, ServedTier, Timestamp, Usage,
    };

    fn charge() -> JournalEntry {
        let bill = Bill {
            slug: "small".to_owned(),
            ..Bill::default()
        };
        JournalEntry {
            position: 1,
            seq: 1,
            customer: CustomerId::from_random(1),
            key: Some(KeyId::from_random(1)),
            operation: OperationId::from_bytes([1; 16]),
            kind: EntryKind::Charge,
            amount: Amount::ZERO,
            balance_after: Amount::ZERO,
            at: Timestamp::default(),
            actor: "gateway".to_owned(),
            reference: None,
            reason: None,
            refunds: None,
            parts: Vec::new(),
            bill: Some(bill),
        }
    }

    #[test]
    fn later_facts_are_shown_only_where_they_are() {
        let mut entry = charge();
        let plain = json(&entry);
        assert!(
            ["served", "exposure", "cost", "provider_cost", "facts"]
                .iter()
                .all(|name| plain.get(*name).is_none()),
            "{plain}"
        );
        assert_eq!(
            row(&entry)[28..],
            [
                "",
                "",
                "",
                "",
                "standard",
                "global",
                "0",
                "",
                "0",
                "0",
                "",
                "c_0000000001",
                "",
                "none"
            ]
        );
        let bill = entry.bill.as_mut().unwrap();
        (bill.exposure, bill.cost) = (Amount::from_picos(1_000_000), Some(Amount::ZERO));
        bill.facts.insert("node".to_owned(), "a".to_owned());
        let full = json(&entry);
        assert_eq!(
            (&full["exposure"], &full["cost"], &full["facts"]["node"]),
            (&"0.000001".into(), &"0.00".into(), &"a".into())
        );
        assert_eq!(row(&entry)[28..32], ["0.000001", "0.00", "node a", ""]);
        // Earlier versions named the provider when nothing had been counted. The hash covers that word, but it is not shown.
        entry.bill.as_mut().unwrap().evidence = Some(Evidence::Provider);
        assert!(json(&entry)["evidence"].is_null() && row(&entry)[20].is_empty());
        entry.bill.as_mut().unwrap().usage.input = 1;
        assert_eq!(
            (&json(&entry)["evidence"], row(&entry)[20].as_str()),
            (&"provider".into(), "provider")
        );
        entry.bill = None;
        assert_eq!((row(&entry).len(), COLUMNS.len()), (42, 42));
    }

    #[test]
    fn parts_are_named_where_a_grant_is_among_them() {
        let of = |grant, picos| MoneyPart::of(grant, Amount::from_picos(picos));
        let plain = charge();
        assert_eq!((json(&plain).get("parts"), &*row(&plain)[40]), (None, ""));
        let parts = vec![
            of(Some(GrantId::from_random(1)), -2_100_000_000_000),
            of(None, -400_000_000_000),
        ];
        let entry = JournalEntry { parts, ..plain };
        let named = json!([
            { "grant": "g_0000000001", "amount": "-2.10" },
            { "grant": null, "amount": "-0.40" },
        ]);
        assert_eq!(json(&entry)["parts"], named);
        assert_eq!(row(&entry)[40], "g_0000000001 -2.10; balance -0.40");
    }

    #[test]
    fn a_class_is_named_with_its_lines() {
        let line = |class: Option<&'static str>| BillLine {
            what: "output".into(),
            count: 5,
            rate: Amount::from_picos(2_000_000),
            class: class.map(Into::into),
        };
        let served = Served {
            tier: ServedTier::Fast,
            place: ServedRegion::Us,
            context_band: 1,
            account: "eu".to_owned(),
        };
        let bill = Bill {
            served,
            provider_cost: Some(Amount::from_picos(9_000_000)),
            cost_source: CostSource::Doubted,
            usage: Usage {
                cache_write_12h: 4,
                calls: 3,
                ..Usage::default()
            },
            lines: vec![line(Some("fast,us")), line(None)],
            ..Bill::default()
        };
        let entry = JournalEntry {
            bill: Some(bill),
            ..charge()
        };
        let document = json(&entry);
        assert_eq!(
            document["served"],
            json!({"tier": "fast", "place": "us", "context_band": 1, "account": "eu"})
        );
        assert_eq!(document["provider_cost"], "0.000009");
        assert_eq!(
            (document.get("cost"), &document["cost_source"]),
            (None, &"doubted".into())
        );
        let mut told = entry.clone();
        let bill = told.bill.as_mut().unwrap();
        (bill.cost, bill.cost_source) = (Some(Amount::from_picos(8_000_000)), CostSource::Told);
        let document = json(&told);
        let said = ["cost", "listed_cost", "provider_cost", "cost_source"];
        assert_eq!(
            said.map(|name| document[name].as_str().unwrap()),
            ["0.000009", "0.000008", "0.000009", "told"]
        );
        assert_eq!((&*row(&told)[29], &*row(&told)[41]), ("0.000009", "told"));
        let lines = &document["lines"];
        assert_eq!(
            (&lines[0]["class"], lines[1].get("class")),
            (&"fast,us".into(), None)
        );
        assert_eq!(
            row(&entry)[32..],
            [
                "fast",
                "us",
                "1",
                "eu",
                "4",
                "3",
                "0.000009",
                "c_0000000001",
                "",
                "doubted"
            ]
        );
        assert_eq!(
            row(&entry)[25],
            "output 5 x 0.000002 (fast,us); output 5 x 0.000002"
        );
    }
}
