//! A cached key equals what a read would find, whoever has changed the ledger meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use proptest::prelude::*;

use super::*;
use crate::{
    Act, Bill, Change, Credit, CreditKind, CustomerId, Hold, KeyChange, KeyEdit, KeySettings,
    KeyStatus, Membership, NewHold, NewKey, Perform, Publish, Refusal, Said,
};

/// A gateway's ledger with keys of a dollar, and another program's view of the same file.
struct Two {
    folder: tempfile::TempDir,
    gateway: Arc<SqliteLedger>,
    console: SqliteLedger,
    operations: AtomicU32,
}

fn key(number: u64) -> KeyId {
    KeyId::from_random(number)
}

impl Two {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("farebox.db");
        let gateway =
            Arc::new(SqliteLedger::create(&path, OpenMode::Serve, Durability::Prompt).unwrap());
        let console = SqliteLedger::open(&path, OpenMode::Write, Durability::Prompt).unwrap();
        let two = Self {
            folder,
            gateway,
            console,
            operations: AtomicU32::new(0),
        };
        for number in 1..=2 {
            let first_credit = Some((Amount::from_picos(1_000_000), format!("first of {number}")));
            let (secret, settings) = (SecretHash([1; 32]), KeySettings::default());
            two.console
                .perform(NewKey {
                    within: Membership::default(),
                    id: key(number),
                    secret,
                    settings,
                    first_credit,
                    purse: None,
                    act: two.act(),
                })
                .await
                .unwrap();
        }
        two
    }

    fn operation(&self) -> OperationId {
        OperationId::from_bytes(
            u128::from(self.operations.fetch_add(1, Ordering::Relaxed)).to_be_bytes(),
        )
    }

    fn act(&self) -> Act {
        Act {
            operation: self.operation(),
            actor: "ada".to_owned(),
            at: Timestamp::from_millis(7),
        }
    }

    async fn change(&self, ledger: &SqliteLedger, change: Change) {
        ledger
            .perform(KeyChange {
                key: key(1),
                change,
                act: self.act(),
            })
            .await
            .unwrap();
    }

    async fn top_up(&self, ledger: &SqliteLedger, number: u64) {
        let operation = self.operation();
        let credit = Credit {
            operation,
            to: (key(number)).into(),
            amount: Amount::from_picos(100),
            reference: operation.to_string(),
            kind: CreditKind::TopUp,
            actor: "ada".to_owned(),
            at: Timestamp::from_millis(8),
        };
        ledger.perform(credit).await.unwrap();
    }

    async fn hold(&self, number: u64, picos: i64) -> Result<Hold, LedgerError> {
        let (amount, at) = (Amount::from_picos(picos), Timestamp::from_millis(9));
        let (slug, family) = ("slug".to_owned(), "chat".to_owned());
        let new = NewHold {
            request: self.operation(),
            customer: CustomerId::made_for(key(number)),
            key: key(number),
            ways: vec![crate::HoldWay::exactly(amount)],
            slug,
            family,
            at,
        };
        Hold::open(Arc::clone(&self.gateway) as Arc<dyn Ledger>, new).await
    }

    async fn pair(&self, number: u64) {
        let hold = self.hold(number, 30).await.unwrap();
        let lines = vec![crate::BillLine {
            what: "input".into(),
            count: 1,
            rate: Amount::from_picos(3),
            class: None,
        }];
        hold.settle(
            Bill {
                slug: "slug".to_owned(),
                lines,
                ..Bill::default()
            },
            Timestamp::from_millis(10),
        )
        .await
        .unwrap();
    }

    /// Reads a key as authentication does, and returns whether the file was read for it.
    fn at_the_door(&self, number: u64) -> (Key, bool) {
        let (opened, mut read) = (self.gateway.opened(), false);
        let remembered = opened.remembered.as_ref().unwrap();
        let found = remembered.find(key(number), || {
            read = true;
            opened
                .readers
                .point(|conn| reads::find_key(conn, key(number)))
        });
        (found.unwrap().unwrap(), read)
    }

    /// The cached key is the one in the file.
    async fn agree(&self) {
        for number in 1..=2 {
            let (at_the_door, _) = self.at_the_door(number);
            assert_eq!(
                Some(at_the_door),
                self.console.find_key(key(number)).await.unwrap()
            );
        }
    }
}

#[tokio::test]
async fn the_gateways_own_commits_keep_a_key_true_and_in_memory() {
    let two = Two::open().await;
    two.pair(1).await;
    two.agree().await;
    for _ in 0..3 {
        let hold = two.hold(1, 50).await.unwrap();
        let (held, read) = two.at_the_door(1);
        assert_eq!(
            (held.customer.account.held, read),
            (Amount::from_picos(50), false)
        );
        two.agree().await;
        hold.settle(Bill::default(), Timestamp::from_millis(11))
            .await
            .unwrap();
        assert!(
            !two.at_the_door(1).1 && !two.at_the_door(2).1,
            "both are still known"
        );
        two.agree().await;
    }
    two.top_up(&two.gateway, 1).await;
    assert!(!two.at_the_door(1).1);
    two.agree().await;
    // A refused operation changes nothing, in the file or in memory.
    assert!(matches!(
        two.hold(1, 5_000_000).await,
        Err(LedgerError::Refused(Refusal::Insufficient { .. }))
    ));
    assert!(!two.at_the_door(1).1);
    // A changed key is read once more.
    two.change(&two.gateway, Change::Block).await;
    assert_eq!(
        (two.at_the_door(1).0.stored_status, two.at_the_door(1).1),
        (KeyStatus::Blocked, false)
    );
    two.agree().await;
}

#[tokio::test]
async fn which_keys_have_ended_is_read_again_only_after_an_act() {
    let two = Two::open().await;
    let both = [key(1), key(2)];
    // Of how many it is not known, and those that have ended.
    let ask = async || {
        let opened = two.gateway.opened();
        let seen = opened.remembered.as_ref().unwrap().acts();
        let unread = opened.ended.known(&both, seen).1.len();
        (unread, two.gateway.ended(&both).await.unwrap())
    };
    two.pair(1).await;
    assert_eq!(ask().await, (2, vec![]));
    two.at_the_door(1);
    for _ in 0..3 {
        two.pair(1).await;
        two.top_up(&two.gateway, 2).await;
        let taught = crate::Taught {
            lessons: vec![crate::Lesson {
                tokens: 1_000,
                ..crate::Lesson::empty("a/m", "standard")
            }],
            excesses: Vec::new(),
        };
        two.gateway.perform(taught).await.unwrap();
        assert_eq!(ask().await, (0, vec![]), "money is no act on a key");
        assert!(!two.at_the_door(1).1, "nor is what targets teach");
    }
    two.change(&two.console, Change::Block).await;
    assert_eq!(ask().await, (2, vec![key(1)]));
    assert_eq!(ask().await, (0, vec![key(1)]));
    two.pair(2).await;
    assert_eq!(ask().await.1, [key(1)]);
    assert_eq!(ask().await.0, 0);
    two.change(&two.gateway, Change::Unblock).await;
    assert_eq!(ask().await, (2, vec![]));
    // Another program's commit may be anything.
    two.top_up(&two.console, 1).await;
    assert_eq!(ask().await, (2, vec![]));
    assert_eq!(ask().await, (0, vec![]));
}

#[tokio::test]
async fn what_another_program_commits_is_seen_at_once() {
    let two = Two::open().await;
    two.pair(1).await;
    two.agree().await;
    let (secret, old_until) = (SecretHash([2; 32]), None);
    let limits = KeyEdit {
        models: Said::Set(vec!["slug".to_owned()]),
        rate: Said::Set(3),
        ..KeyEdit::default()
    };
    for change in [
        Change::Block,
        Change::Unblock,
        Change::Rotate { secret, old_until },
        Change::Edit(limits),
        Change::Revoke,
    ] {
        assert!(!two.at_the_door(1).1, "it is remembered");
        two.change(&two.console, change).await;
        let (_, read) = two.at_the_door(1);
        assert!(read);
        two.agree().await;
        // Nothing is cached until the writer has seen for itself that nobody else writes; a batch of any key will do.
        assert!(two.at_the_door(1).1);
        two.pair(2).await;
        two.agree().await;
    }
    let (revoked, read) = two.at_the_door(1);
    assert_eq!(
        (revoked.stored_status, revoked.secret, read),
        (KeyStatus::Revoked, secret, false)
    );
}

#[tokio::test]
async fn a_session_and_a_slug_make_the_door_forget_and_nothing_worse() {
    let two = Two::open().await;
    two.pair(1).await;
    two.agree().await;
    two.gateway
        .perform(Publish {
            slugs: vec!["new".to_owned()],
            now: Timestamp::from_millis(3),
        })
        .await
        .unwrap();
    two.console
        .perform(Publish {
            slugs: vec!["newer".to_owned()],
            now: Timestamp::from_millis(3),
        })
        .await
        .unwrap();
    two.agree().await;
    two.change(&two.console, Change::Block).await;
    assert_eq!(two.at_the_door(1).0.stored_status, KeyStatus::Blocked);
    two.agree().await;
}

#[tokio::test]
async fn a_restored_file_is_read_and_not_remembered() {
    let two = Two::open().await;
    let (path, backup) = (
        two.folder.path().join("farebox.db"),
        two.folder.path().join("backup.db"),
    );
    two.pair(1).await;
    two.gateway.backup(&backup).await.unwrap();
    let before = two.at_the_door(1).0;
    for _ in 0..3 {
        two.pair(1).await;
        two.top_up(&two.gateway, 1).await;
    }
    assert_ne!(
        two.at_the_door(1).0.customer.account,
        before.customer.account
    );
    for suffix in ["", "-wal", "-shm"] {
        let name = format!("{}{suffix}", path.display());
        std::fs::rename(&name, format!("{name}.old")).unwrap();
    }
    std::fs::rename(&backup, &path).unwrap();
    assert_eq!(two.gateway.look(true), FilesCheck::Returned);
    assert_eq!(two.at_the_door(1).0, before);
    two.gateway
        .recover(Timestamp::from_millis(20))
        .await
        .unwrap();
    two.gateway.resume();
    two.pair(1).await;
    two.agree().await;
    assert!(!two.at_the_door(1).1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_is_at_the_door_as_soon_as_it_is_confirmed_whatever_the_gateway_writes() {
    let two = Arc::new(Two::open().await);
    let busy = Arc::clone(&two);
    let work = tokio::spawn(async move {
        for _ in 0..150 {
            busy.pair(1).await;
            busy.at_the_door(1);
        }
    });
    for payments in 1..=150 {
        two.top_up(&two.console, 1).await;
        let (paid, _) = two.at_the_door(1);
        assert_eq!(
            paid.customer.account.credit,
            Amount::from_picos(1_000_000 + 100 * payments)
        );
    }
    work.await.unwrap();
    two.agree().await;
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Pair(u64),
    Own(u64),
    Theirs(u64),
    Block(bool),
    Refused,
    Publish(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..=2_u64).prop_map(Step::Pair),
        1 => (1..=2_u64).prop_map(Step::Own),
        2 => (1..=2_u64).prop_map(Step::Theirs),
        1 => any::<bool>().prop_map(Step::Block),
        1 => Just(Step::Refused),
        1 => any::<bool>().prop_map(Step::Publish),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_door_agrees_with_the_file_after_every_step(steps in prop::collection::vec(step(), 1..24)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let two = Two::open().await;
            for step in steps {
                match step {
                    Step::Pair(number) => {
                        if two.at_the_door(number).0.stored_status == KeyStatus::Active {
                            two.pair(number).await;
                        }
                    }
                    Step::Own(number) => two.top_up(&two.gateway, number).await,
                    Step::Theirs(number) => two.top_up(&two.console, number).await,
                    Step::Block(true) => two.change(&two.console, Change::Block).await,
                    Step::Block(false) => two.change(&two.gateway, Change::Unblock).await,
                    Step::Refused => assert!(two.hold(2, 5_000_000).await.is_err()),
                    Step::Publish(own) => {
                        let ledger = if own { &*two.gateway } else { &two.console };
                        ledger.perform(Publish { slugs: vec![two.operation().to_string()], now: Timestamp::from_millis(4) }).await.unwrap();
                    }
                }
                two.agree().await;
            }
        });
    }
}
