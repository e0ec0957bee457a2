//! Money in: credits, references, adjustments and refunds.

use std::sync::Arc;

use farebox_ledger::*;

use super::common::*;
use super::{account, refused};

pub(crate) async fn credits_post_once_per_reference(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.perform(new_key(2, 11, None)).await.unwrap();
    let posted = ledger
        .perform(top_up(1, 12, "20.00", "inv-1"))
        .await
        .unwrap();
    assert!(!posted.repeated);
    assert_eq!(
        (
            posted.entry.seq,
            posted.entry.balance_after,
            posted.customer.account.credit
        ),
        (2, usd("25"), usd("25"))
    );
    for operation in [12, 13] {
        let again = ledger
            .perform(top_up(1, operation, "20.00", "inv-1"))
            .await
            .unwrap();
        assert!(again.repeated);
        assert_eq!(
            (again.entry, again.key),
            (posted.entry.clone(), posted.key.clone())
        );
    }
    let conflict = Refusal::ReferenceUsed {
        reference: "inv-1".into(),
        customer: CustomerId::made_for(key(1)),
    };
    assert_eq!(
        refused(ledger.perform(top_up(1, 14, "21.00", "inv-1")).await),
        conflict
    );
    assert_eq!(
        refused(ledger.perform(top_up(2, 14, "20.00", "inv-1")).await),
        conflict
    );
    assert_eq!(
        refused(ledger.perform(top_up(1, 12, "20.00", "inv-2")).await),
        Refusal::OperationUsed(op(12))
    );
    assert_eq!(
        refused(ledger.perform(top_up(9, 15, "20.00", "inv-3")).await),
        Refusal::NoSuchKey(key(9))
    );
    let adjust = CreditKind::Adjust {
        reason: "gift".into(),
        is_paid: false,
    };
    assert_eq!(
        refused(
            ledger
                .perform(credit(1, 16, adjust, "20.00", "inv-1"))
                .await
        ),
        conflict
    );
    assert!(matches!(
        refused(ledger.perform(top_up(1, 17, "1", " ")).await),
        Refusal::NotApplicable(_)
    ));
    assert!(
        ledger
            .perform(top_up(1, 18, "5", "first-1"))
            .await
            .unwrap()
            .repeated,
        "the first credit has a reference too"
    );
    assert_eq!(account(&*ledger, 1).await.credit, usd("25"));
    sound(&*ledger).await;
}

pub(crate) async fn references_are_one_in_every_spelling(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, None)).await.unwrap();
    let posted = ledger
        .perform(top_up(1, 11, "5", " Caf\u{e9}-7 "))
        .await
        .unwrap();
    assert_eq!(
        posted.entry.reference.as_deref(),
        Some("Caf\u{e9}-7"),
        "stored trimmed and composed"
    );
    let spellings = [
        "Caf\u{e9}-7",
        "cafe\u{301}-7",
        "CAF\u{c9}-7",
        "\tCAFE\u{301}-7\n",
    ];
    for (operation, spelling) in (20..).zip(spellings) {
        let again = ledger
            .perform(top_up(1, operation, "5", spelling))
            .await
            .unwrap();
        assert!(
            again.repeated && again.entry == posted.entry,
            "{spelling:?}"
        );
        let conflict = Refusal::ReferenceUsed {
            reference: "Caf\u{e9}-7".into(),
            customer: CustomerId::made_for(key(1)),
        };
        assert_eq!(
            refused(ledger.perform(top_up(1, operation, "6", spelling)).await),
            conflict
        );
        let mut other = new_key(2, 40, None);
        other.first_credit = Some((usd("5"), spelling.to_owned()));
        assert_eq!(refused(ledger.perform(other).await), conflict);
    }
    for (operation, unseen) in (50..).zip(["inv\n7", "inv\u{0}7", "inv\u{200b}7", "\u{202e}inv"]) {
        assert!(matches!(
            refused(ledger.perform(top_up(1, operation, "5", unseen)).await),
            Refusal::NotApplicable(_)
        ));
    }
    assert_eq!(account(&*ledger, 1).await.credit, usd("5"));
    sound(&*ledger).await;
}

pub(crate) async fn credits_obey_the_limits(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, None)).await.unwrap();
    for (operation, amount) in [(11, "0"), (12, "-1"), (13, "100000.000001")] {
        assert!(matches!(
            refused(ledger.perform(top_up(1, operation, amount, amount)).await),
            Refusal::Limit(_)
        ));
    }
    for number in 0..10 {
        ledger
            .perform(top_up(1, 20 + number, "100000", &format!("big-{number}")))
            .await
            .unwrap();
    }
    assert!(matches!(
        refused(ledger.perform(top_up(1, 40, "0.000001", "more")).await),
        Refusal::Limit(_)
    ));
    sound(&*ledger).await;
}

pub(crate) async fn adjustments_take_only_what_is_available(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.perform(new_hold(1, 20, "2")).await.unwrap();
    let adjust = |operation, amount: &str| {
        credit(
            1,
            operation,
            CreditKind::Adjust {
                reason: "typing error".into(),
                is_paid: true,
            },
            amount,
            &format!("adjust-{operation}"),
        )
    };
    let refusal = Refusal::Insufficient {
        needed: usd("3.01"),
        available: usd("3"),
        held: usd("2"),
    };
    assert_eq!(refused(ledger.perform(adjust(11, "-3.01")).await), refusal);
    assert!(matches!(
        refused(ledger.perform(adjust(12, "0")).await),
        Refusal::Limit(_)
    ));
    let posted = ledger.perform(adjust(13, "-3")).await.unwrap();
    assert_eq!(
        (posted.entry.amount, posted.entry.reason.as_deref()),
        (usd("-3"), Some("typing error"))
    );
    assert_eq!(
        ledger
            .perform(adjust(14, "1.5"))
            .await
            .unwrap()
            .customer
            .account
            .available(),
        usd("1.50")
    );
    let unexplained = credit(
        1,
        15,
        CreditKind::Adjust {
            reason: String::new(),
            is_paid: true,
        },
        "1",
        "adjust-15",
    );
    assert!(matches!(
        refused(ledger.perform(unexplained).await),
        Refusal::NotApplicable(_)
    ));
    sound(&*ledger).await;
}

pub(crate) async fn refunds_never_exceed_their_charge(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.perform(new_key(2, 11, Some("5"))).await.unwrap();
    ledger.perform(new_hold(1, 20, "2")).await.unwrap();
    let refund = |number, operation, request, amount: &str| {
        let kind = CreditKind::Refund {
            request: op(request),
            reason: "bad answer".into(),
        };
        credit(
            number,
            operation,
            kind,
            amount,
            &format!("refund-{operation}"),
        )
    };
    let nothing = |request| Refusal::NotRefundable {
        request: op(request),
        refundable: Amount::ZERO,
    };
    assert_eq!(
        refused(ledger.perform(refund(1, 12, 20, "1")).await),
        nothing(20),
        "not ended yet"
    );
    ledger
        .perform(Arc::new(finish(20, 2_000_000)))
        .await
        .unwrap();
    assert_eq!(
        refused(ledger.perform(refund(2, 13, 20, "1")).await),
        nothing(20),
        "another key's request"
    );
    assert_eq!(
        refused(ledger.perform(refund(1, 14, 10, "1")).await),
        nothing(10),
        "not a charge"
    );
    let posted = ledger.perform(refund(1, 15, 20, "1.5")).await.unwrap();
    assert_eq!(
        (posted.entry.request(), posted.customer.account.spent),
        (Some(op(20)), usd("0.5"))
    );
    assert!(
        ledger
            .perform(refund(1, 15, 20, "1.5"))
            .await
            .unwrap()
            .repeated
    );
    let left = Refusal::NotRefundable {
        request: op(20),
        refundable: usd("0.5"),
    };
    assert_eq!(
        refused(ledger.perform(refund(1, 16, 20, "0.500001")).await),
        left
    );
    ledger.perform(refund(1, 17, 20, "0.5")).await.unwrap();
    assert_eq!(
        refused(ledger.perform(refund(1, 18, 20, "0.000001")).await),
        nothing(20)
    );
    assert_eq!(
        account(&*ledger, 1).await,
        Account {
            credit: usd("5"),
            ..Account::default()
        }
    );
    assert_eq!(ledger.totals().await.unwrap().spent, 0);
    sound(&*ledger).await;
}
