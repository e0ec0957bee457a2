//! Grants in the model test, and the clock by which they begin, near their end, and end.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use farebox_ledger::*;
use proptest::prelude::*;

use super::Step;
use super::common::*;
use super::facts::cents;

/// A clock that stands for all stores, and moves between steps alone. The clock is the process's, so one sequence runs at a time.
pub(super) struct Standing {
    at: i64,
    _turn: MutexGuard<'static, ()>,
}

static TURN: Mutex<()> = Mutex::new(());

impl Standing {
    pub(super) fn begin() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let at = clock::now().millis();
        clock::stand_at(Some(Timestamp::from_millis(at)));
        Self { at, _turn: turn }
    }

    pub(super) fn step(&mut self, step: &Step) {
        if let Step::Wait(seconds) = step {
            self.at += seconds * 1_000;
            clock::stand_at(Some(Timestamp::from_millis(self.at)));
        }
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        clock::stand_at(None);
    }
}

/// What somebody gives; begin and end are seconds from now.
#[derive(Debug, Clone)]
pub(super) struct Gift {
    number: u64,
    amount: i64,
    is_paid: bool,
    priority: u8,
    begins: Option<i64>,
    ends: Option<i64>,
    slug: Option<&'static str>,
    reference: u64,
}

/// Half a minute around the present, where sequences are; and days before what is told of an end.
fn ends() -> impl Strategy<Value = Option<i64>> {
    let day = 86_400;
    prop_oneof![
        2 => Just(None),
        6 => (-2..40_i64).prop_map(Some),
        1 => (-5..40_i64).prop_map(move |seconds| Some(day + seconds)),
        1 => (-5..40_i64).prop_map(move |seconds| Some(7 * day + seconds)),
        1 => (-5..40_i64).prop_map(move |seconds| Some(30 * day + seconds)),
    ]
}

pub(super) fn gift() -> impl Strategy<Value = Gift> {
    let priority = prop_oneof![3 => Just(50), 1 => Just(40), 1 => Just(60), 1 => 99..102_u8];
    let begins = prop_oneof![4 => Just(None), 1 => (-9..20_i64).prop_map(Some), 1 => Just(Some(-86_400 * 31))];
    let slug = prop_oneof![2 => Just(None), 1 => Just(Some("small")), 1 => Just(Some("odd"))];
    let whose = (0..9_u64, -1..40_i64, any::<bool>(), 0..12_u64);
    (whose, priority, begins, ends(), slug).prop_map(
        |((number, amount, is_paid, reference), priority, begins, ends, slug)| Gift {
            number,
            amount,
            is_paid,
            priority,
            begins,
            ends,
            slug,
            reference,
        },
    )
}

/// The slug of a request.
pub(super) const fn slug(operation: u64) -> &'static str {
    if operation.is_multiple_of(3) {
        "odd"
    } else {
        "small"
    }
}

pub(super) async fn give(
    ledger: &dyn Ledger,
    (key_of, operation): (u64, u64),
    gift: Gift,
) -> String {
    let now = clock::now().millis();
    let after = |seconds: i64| Timestamp::from_millis(now + seconds * 1_000);
    let reference = match gift.number % 3 {
        0 => format!("r-{}", gift.reference),
        _ => format!("g-{}", gift.number),
    };
    let new = NewGrant {
        id: GrantId::from_random(gift.number),
        customer: CustomerId::made_for(key(key_of)),
        kind: if gift.is_paid {
            GrantKind::Paid
        } else {
            GrantKind::Promotional
        },
        amount: cents(gift.amount),
        priority: gift.priority,
        effective_at: gift.begins.map(after),
        expires_at: gift.ends.map(after),
        models: gift.slug.map(|slug| vec![slug.to_owned()]),
        reference,
        act: Act {
            // Some callers' clocks are far behind.
            at: if gift.number.is_multiple_of(2) {
                clock::now()
            } else {
                at(60)
            },
            ..act(operation, 60)
        },
    };
    format!("{:?}", ledger.perform(new).await)
}

pub(super) async fn take_back(
    ledger: &dyn Ledger,
    (key_of, operation): (u64, u64),
    number: u64,
) -> String {
    let customer = CustomerId::made_for(key(key_of));
    // Some are those of vouchers, corrections and refunds.
    let all = ledger.grants(GrantQuery {
        customer: Some(customer),
        limit: 99,
        ..GrantQuery::default()
    });
    let all = all.await.unwrap();
    let nth = usize::try_from(number).unwrap();
    let grant = all
        .get(nth)
        .map_or(GrantId::from_random(number), |known| known.grant.id);
    let of = VoidGrant {
        grant,
        customer,
        act: act(operation, 60),
    };
    format!("{:?}", ledger.perform(of).await)
}

/// Four vouchers that give, four that pay, and four for a period.
pub(super) async fn redeem(
    ledger: &dyn Ledger,
    (key_of, operation): (u64, u64),
    code: u8,
) -> String {
    let paid = NewLot {
        kind: GrantKind::Paid,
        codes: (204..208).map(secret).collect(),
        ..new_lot(2, 902, 4)
    };
    let of_plan = NewLot {
        kind: GrantKind::Plan,
        codes: (208..212).map(secret).collect(),
        amount: super::plans::terms(0).allowance,
        plan: Some(Box::new(super::plans::terms(0))),
        ..new_lot(3, 903, 4)
    };
    for lot in [new_lot(1, 901, 4), paid, of_plan] {
        ledger.perform(lot).await.unwrap();
    }
    format!(
        "{:?}",
        ledger
            .perform(redemption(200 + code, key_of, operation))
            .await
    )
}

/// How often sequences came to what is rare. A model that never comes there proves nothing of it.
#[derive(Default)]
pub(super) struct Reached(Mutex<BTreeMap<&'static str, usize>>);

impl Reached {
    const ALL: [&'static str; 10] = [
        "a charge of several sources",
        "an end",
        "a void",
        "a part given back after the end",
        "a refund to a grant",
        "a refund after the end",
        "a reversal of a grant",
        "a notice",
        "a carry",
        "a charge in windows",
    ];

    pub(super) async fn note(&self, ledger: &dyn Ledger) {
        let entries = ledger.entries(EntryQuery::default()).await.unwrap();
        let of = |kinds: &[EntryKind]| {
            entries
                .iter()
                .filter(|entry| kinds.contains(&entry.kind))
                .collect::<Vec<_>>()
        };
        let gone = of(&[EntryKind::Expired, EntryKind::Void]);
        let twice = gone.iter().enumerate().filter(|(at, entry)| {
            let before = gone.iter().take(*at);
            before
                .clone()
                .any(|other| other.parts[0].grant == entry.parts[0].grant)
        });
        let refunds = of(&[EntryKind::Refund]);
        let late = refunds.iter().filter(|refund| {
            let charge = entries
                .iter()
                .find(|entry| Some(entry.operation) == refund.refunds)
                .unwrap();
            let known = |part: &MoneyPart| charge.parts.iter().any(|of| of.grant == part.grant);
            !refund.parts.iter().all(known)
        });
        let with_parts =
            |all: &[&JournalEntry]| all.iter().filter(|entry| !entry.parts.is_empty()).count();
        let charges = of(&[EntryKind::Charge]);
        let several = charges.iter().filter(|charge| charge.parts.len() > 1);
        let windowed = charges.iter().filter(|charge| {
            let mut parts = charge.parts.iter();
            parts.any(|part| !part.windows.is_empty())
        });
        let told = events(ledger, 0).await;
        let told = told
            .iter()
            .filter(|event| event.kind == EventKind::GrantExpiring);
        let counts = [
            several.count(),
            of(&[EntryKind::Expired]).len(),
            of(&[EntryKind::Void]).len(),
            twice.count(),
            with_parts(&refunds),
            late.count(),
            with_parts(&of(&[EntryKind::Reversal])),
            told.count(),
            of(&[EntryKind::Carry]).len(),
            windowed.count(),
        ];
        let mut sums = self.0.lock().unwrap();
        for (what, count) in Self::ALL.into_iter().zip(counts) {
            *sums.entry(what).or_default() += count;
        }
    }

    /// What a few thousand steps are sure to reach. Refunds of what grants paid are so rare that stories of their own reach them.
    const OFTEN: [&str; 6] = [
        "a carry",
        "a charge in windows",
        "a charge of several sources",
        "an end",
        "a void",
        "a notice",
    ];

    /// How often, if it came to all that is often reached.
    pub(super) fn check(&self) -> String {
        let sums = self.0.lock().unwrap();
        let all = (Self::OFTEN.iter()).all(|what| sums.get(what).is_some_and(|count| *count > 0));
        assert!(all, "{sums:?}");
        format!("{sums:?}")
    }
}
