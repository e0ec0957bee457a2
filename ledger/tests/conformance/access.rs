//! The customer's dashboard, and slugs: sessions, links, dates.

use std::sync::Arc;

use farebox_ledger::*;

use super::common::*;
use super::refused;

pub(crate) async fn sessions_end_with_the_key(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, None)).await.unwrap();
    let session = |token: u8| Session {
        token: secret(token),
        key: key(1),
        at: at(500),
        expires: at(600),
    };
    ledger.perform(session(50)).await.unwrap();
    ledger.perform(session(50)).await.unwrap();
    assert!(matches!(
        refused(
            ledger
                .perform(Session {
                    at: at(501),
                    ..session(50)
                })
                .await
        ),
        Refusal::NotApplicable(_)
    ));
    assert_eq!(
        ledger.find_session(secret(50), at(599)).await.unwrap(),
        Some(key(1))
    );
    assert_eq!(
        ledger.find_session(secret(50), at(600)).await.unwrap(),
        None
    );
    assert_eq!(
        ledger.find_session(secret(51), at(500)).await.unwrap(),
        None
    );
    ledger.perform(CloseSession(secret(50))).await.unwrap();
    ledger.perform(CloseSession(secret(50))).await.unwrap();
    assert_eq!(
        ledger.find_session(secret(50), at(500)).await.unwrap(),
        None
    );
    for (operation, what) in [
        (
            11,
            Change::Rotate {
                secret: secret(2),
                old_until: Some(at(999)),
            },
        ),
        (12, Change::Block),
        (13, Change::Revoke),
    ] {
        let token = u8::try_from(operation).unwrap();
        ledger.perform(session(token)).await.unwrap();
        ledger
            .perform(NewLink {
                key: key(1),
                token: secret(token),
                expires: at(900),
                act: act(operation + 100, 400),
            })
            .await
            .unwrap();
        ledger.perform(change(1, operation, what)).await.unwrap();
        assert_eq!(
            ledger.find_session(secret(token), at(500)).await.unwrap(),
            None
        );
        assert_eq!(
            ledger.consume_link(secret(token), at(500)).await.unwrap(),
            None
        );
        if operation == 12 {
            assert_eq!(
                refused(ledger.perform(session(60)).await),
                Refusal::NotActive(KeyStatus::Blocked)
            );
            ledger
                .perform(change(1, 20, Change::Unblock))
                .await
                .unwrap();
            assert_eq!(
                ledger.find_session(secret(token), at(500)).await.unwrap(),
                None,
                "unblocking does not bring it back"
            );
        }
    }
    assert_eq!(
        refused(ledger.perform(session(61)).await),
        Refusal::NotActive(KeyStatus::Revoked)
    );
    sound(&*ledger).await;
}

pub(crate) async fn links_open_once(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, None)).await.unwrap();
    ledger
        .perform(NewLink {
            key: key(1),
            token: secret(70),
            expires: at(900),
            act: act(11, 400),
        })
        .await
        .unwrap();
    ledger
        .perform(NewLink {
            key: key(1),
            token: secret(70),
            expires: at(900),
            act: act(11, 400),
        })
        .await
        .unwrap();
    assert!(matches!(
        refused(
            ledger
                .perform(NewLink {
                    key: key(1),
                    token: secret(70),
                    expires: at(900),
                    act: act(12, 400)
                })
                .await
        ),
        Refusal::NotApplicable(_)
    ));
    assert_eq!(
        refused(
            ledger
                .perform(NewLink {
                    key: key(9),
                    token: secret(71),
                    expires: at(900),
                    act: act(13, 400)
                })
                .await
        ),
        Refusal::NoSuchKey(key(9))
    );
    assert_eq!(
        ledger.consume_link(secret(70), at(899)).await.unwrap(),
        Some(key(1))
    );
    assert_eq!(
        ledger.consume_link(secret(70), at(899)).await.unwrap(),
        None
    );
    ledger
        .perform(NewLink {
            key: key(1),
            token: secret(72),
            expires: at(900),
            act: act(14, 400),
        })
        .await
        .unwrap();
    assert_eq!(
        ledger.consume_link(secret(72), at(900)).await.unwrap(),
        None,
        "expired"
    );
    let audit = ledger.audit(Some(key(1).into()), None, 9).await.unwrap();
    assert_eq!(
        audit.iter().map(|record| &*record.act).collect::<Vec<_>>(),
        ["link", "link", "create"]
    );
    sound(&*ledger).await;
}

pub(crate) async fn slugs_keep_their_first_date(ledger: SharedLedger) {
    ledger
        .perform(Publish {
            slugs: vec!["b".into(), "a".into()],
            now: at(1),
        })
        .await
        .unwrap();
    ledger.perform(new_key(1, 10, Some("1"))).await.unwrap();
    ledger.perform(new_hold(1, 20, "0.1")).await.unwrap();
    ledger.perform(Arc::new(finish(20, 1))).await.unwrap();
    let published = |slug: &str, seconds| PublishedSlug {
        slug: slug.into(),
        since: at(seconds),
    };
    assert_eq!(
        ledger.published().await.unwrap(),
        [published("a", 1), published("b", 1)],
        "use is not publication"
    );
    ledger
        .perform(Publish {
            slugs: vec!["b".into(), "small".into()],
            now: at(2),
        })
        .await
        .unwrap();
    assert_eq!(
        ledger.published().await.unwrap(),
        [published("a", 1), published("b", 1), published("small", 2)]
    );
    sound(&*ledger).await;
}

pub(crate) async fn sessions_of_a_key_and_of_a_customer_are_bounded(ledger: SharedLedger) {
    let owner = ledger.perform(new_key(1, 10, None)).await.unwrap();
    for number in 2..=11 {
        let mut member = new_key(number, 10 + number, None);
        member.within.customer = Some(owner.customer.id);
        ledger.perform(member).await.unwrap();
    }
    let token = |number: u64, of: u64| {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&of.to_le_bytes());
        bytes[8..16].copy_from_slice(&number.to_le_bytes());
        SecretHash(bytes)
    };
    let open = async |number: u64, of: u64| {
        let session = Session {
            token: token(number, of),
            key: key(of),
            at: at(1_000 + i64::try_from(of * 100 + number).unwrap()),
            expires: at(99_999),
        };
        ledger.perform(session).await.unwrap();
    };
    let is_open = async |number, of| {
        let found = ledger.find_session(token(number, of), at(5_000)).await;
        found.unwrap().is_some()
    };
    for number in 0..21 {
        open(number, 1).await;
    }
    assert!(!is_open(0, 1).await, "the key's oldest of 21");
    assert!(is_open(1, 1).await);
    for of in 2..=11 {
        for number in 0..20 {
            open(number, of).await;
        }
    }
    assert!(!is_open(20, 1).await, "the customer's oldest of 220");
    assert!(is_open(0, 2).await && is_open(19, 11).await);
}
