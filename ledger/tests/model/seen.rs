//! What two stores must agree on: after every step, and at the end.

use farebox_ledger::*;

use super::common::*;
use super::facts::hour;

/// What both stores must agree on after every step.
pub(super) async fn glance(ledger: &dyn Ledger) -> String {
    let mut keys = Vec::new();
    for number in 1..4 {
        let found = ledger.find_key(key(number)).await.unwrap();
        assert!(
            found
                .as_ref()
                .is_none_or(|key| key.customer.account.is_sound()),
            "{found:?}"
        );
        keys.push(found);
    }
    without_unused(&format!("{keys:?} {:?}", ledger.totals().await.unwrap()))
}

/// Windows in which nothing is counted begin anew with each look, unless somebody has begun them.
fn without_unused(seen: &str) -> String {
    let mut parts = seen.split("PlanWindow {");
    let first = parts.next().unwrap_or_default().to_owned();
    let used = parts.fold(first, |seen, part| match part.split_once("told: ") {
        Some((window, rest)) if window.contains("charged: Amount(0), held: Amount(0)") => {
            let (_, rest) = rest.split_once('}').unwrap_or_default();
            seen + rest.trim_start_matches(", ")
        }
        _ => seen + "PlanWindow {" + part,
    });
    used.replace(", ]", "]")
}

/// Everything there is to see, once as many events as were `told` can be seen.
pub(super) async fn everything(ledger: &dyn Ledger, told: usize) -> String {
    let mut seen = Vec::new();
    for owner in [None, Some(key(1)), Some(key(2))] {
        let query = EntryQuery {
            key: owner,
            ..EntryQuery::default()
        };
        seen.push(format!("{:?}", ledger.entries(query).await.unwrap()));
        seen.push(format!(
            "{:?}",
            ledger
                .audit(owner.map(Into::into), None, 1_000)
                .await
                .unwrap()
        ));
        seen.push(format!(
            "{:?}",
            ledger
                .open_holds(owner.map(Into::into), 1_000)
                .await
                .unwrap()
        ));
    }
    let all = CustomerQuery {
        limit: 9,
        ..CustomerQuery::default()
    };
    let customers = ledger.list_customers(all).await.unwrap();
    for customer in &customers {
        let of = Some(customer.id.into());
        let acts = ledger.audit(of, None, 1_000).await.unwrap();
        let holds = ledger.open_holds(of, 1_000).await.unwrap();
        seen.push(format!("{customer:?} {acts:?} {holds:?}"));
    }
    seen.push(format!("{:?}", ledger.house_acts().await.unwrap()));
    let subscriptions = ledger.all::<Subscription>().await.unwrap();
    seen.push(format!("{subscriptions:?}"));
    let whole = |limit| GrantQuery {
        limit,
        ..GrantQuery::default()
    };
    seen.push(format!("{:?}", ledger.grants(whole(9_999)).await.unwrap()));
    let of = GrantQuery {
        customer: Some(CustomerId::made_for(key(1))),
        status: Some(GrantStatus::Expired),
        ..whole(2)
    };
    seen.push(format!("{:?}", ledger.grants(of).await.unwrap()));
    seen.push(format!("{:?}", ledger.all::<GrantRecord>().await.unwrap()));
    let listed = ledger.all::<ListedCustomer>().await.unwrap();
    seen.push(format!("{listed:?}"));
    seen.push(format!(
        "{:?}",
        ledger.due_grants(clock::now()).await.unwrap()
    ));
    // What time has done is dated by the clock, and so is everything of a customer that comes behind it.
    let (hour_of, hours) = (clock::now().millis(), 3_600_000);
    let nearby = [hour_of - hours, hour_of + hours].map(Timestamp::from_millis);
    for (from, to) in [(at(0), at(1_000_000)), nearby.into()] {
        for number in 1..4 {
            let used = ledger.usage(key(number), from, to).await.unwrap();
            seen.push(format!("{used:?}"));
        }
        let months = (StatementMonth::of(from), StatementMonth::of(to));
        for customer in &customers {
            for of in [None, Some(key(1))] {
                let query = RunQuery {
                    customer: customer.id,
                    key: of,
                    months,
                    limit: 9,
                };
                let sums = ledger.usage_by_run(query).await.unwrap();
                seen.push(format!("{sums:?}"));
            }
        }
        let used = ledger.slug_hours(from, to).await.unwrap();
        seen.push(format!("{used:?}"));
    }
    for token in 0..4 {
        seen.push(format!(
            "{:?}",
            ledger.find_session(secret(token), hour(30)).await.unwrap()
        ));
    }
    seen.push(format!("{:?}", ledger.slug_use(hour(20)).await.unwrap()));
    for event in recent(ledger, told).await {
        let Event { id, kind, seq, .. } = event;
        let (customer, data) = (event.customer, event.data);
        seen.push(format!("{id} {kind:?} {customer:?} {seq:?} {data}"));
    }
    seen.push(format!(
        "{:?}",
        ledger
            .list_keys(KeyQuery {
                limit: 9,
                ..KeyQuery::default()
            })
            .await
            .unwrap()
    ));
    without_unused(&seen.join("\n"))
}

/// What was told in the last 29 days, once so much can be seen: what is older than 30 is forgotten, sooner or later.
pub(super) async fn recent(ledger: &dyn Ledger, count: usize) -> Vec<Event> {
    let since = clock::now().millis() - 29 * 86_400_000;
    for _ in 0..2_000 {
        let mut found = events(ledger, 0).await;
        found.retain(|event| event.at.millis() >= since);
        if found.len() >= count {
            return found;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    events(ledger, 0).await
}

/// The first line in which what two stores have differs, of both.
pub(super) fn difference(seen: &str, expected: &str) -> Option<String> {
    let (mut seen, mut expected) = (seen.lines(), expected.lines());
    loop {
        match (seen.next(), expected.next()) {
            (None, None) => return None,
            (seen, expected) if seen != expected => {
                let [seen, expected] = [seen, expected].map(Option::unwrap_or_default);
                return Some(format!("{seen}\n  is not\n{expected}"));
            }
            _ => {}
        }
    }
}

/// Positions have gaps where several gateways write; their order is compared with everything else.
pub(super) fn without_positions(seen: &str) -> String {
    let mut parts = seen.split("position: ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |seen, part| {
        seen + "position: " + part.trim_start_matches(|digit: char| digit.is_ascii_digit())
    })
}

/// A refusal for lack of money: the reference does not know which window or period of a plan opens next.
pub(super) fn without_limits(seen: &str) -> String {
    let between = |from: &str, to: &str| {
        let (_, rest) = seen.split_once(from)?;
        rest.split_once(to).map(|(found, _)| found.to_owned())
    };
    let by_plan = seen.contains("CapReached") && seen.contains("plan: Some(PlanLimit");
    let available = if by_plan {
        between("room: ", ", spent")
    } else if seen.contains("Insufficient {") {
        between("available: ", ", held")
    } else {
        None
    };
    match (between("needed: ", ", "), available) {
        (Some(needed), Some(available)) => format!("{needed} of {available}"),
        _ => without_windows(seen),
    }
}

/// What an operation answers has a store's windows, or what a read would make of them; that is compared after every step.
fn without_windows(seen: &str) -> String {
    let mut parts = seen.split("windows: [PlanWindow {");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |seen, part| {
        let (_, rest) = part.split_once("}] }").unwrap_or_default();
        seen + "windows: [] }" + rest
    })
}
