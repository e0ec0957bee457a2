//! Marks, and acts on all marked keys: one review that lists what changes, one `y`, one operation for each key.

use std::collections::HashSet;

use farebox_ledger::{KeyId, Scope};
use serde_json::json;

use super::bench::Bench;
use super::fixture::{counted, keys};
use crate::acts::UNBLOCK;
use crate::app::bulk::BulkItemState;
use crate::app::message::{Effect, Message};
use crate::app::modal::{ActOutcome, ApplyError, Modal};

fn bench() -> Bench {
    Bench::with(80, 24, keys(), counted)
}

/// The state of each key of the open bulk act.
fn states(bench: &Bench) -> Vec<(KeyId, BulkItemState)> {
    let Some(Modal::Bulk(act)) = &bench.app.modal else {
        panic!("no bulk act\n{}", bench.screen())
    };
    let state = |item: &crate::app::bulk::BulkItem| (item.key.id, item.state.clone());
    act.items.iter().map(state).collect()
}

#[test]
fn one_review_lists_what_changes_and_one_y_sends_it() {
    let mut bench = bench();
    bench.press("<space><space><space>t12.50<tab>inv-7<enter>");
    let screen = bench.screen();
    assert!(
        screen.contains("Top up: review · 3 keys") && screen.contains("37.50 USD in all"),
        "{screen}"
    );
    // The third key has nothing: before and after are both there.
    assert!(
        screen.contains("$0.00") && screen.contains("$12.50"),
        "{screen}"
    );
    bench.press("n<space><enter>");
    assert!(bench.sent.is_empty() && matches!(bench.app.modal, Some(Modal::Form(_))));
    bench.press("<enter>yyyy");
    let ids: HashSet<Scope> = bench.sent.iter().filter_map(|sent| sent.plan.of).collect();
    assert_eq!((bench.sent.len(), ids.len()), (3, 3));
    for pending in &bench.sent {
        let reference = format!("inv-7-{}", pending.plan.of.unwrap());
        let said = json!({ "amount": "12.50", "reference": reference });
        assert_eq!(json!(pending.plan.body), said);
        assert!(bench.asked.contains(&Effect::Forget(pending.operation)));
    }
    let screen = bench.screen();
    assert!(screen.contains("3 of 3 applied, 0 failed"), "{screen}");
    bench.press("<esc>");
    assert!(bench.app.modal.is_none() && bench.app.marks.is_empty());
}

#[test]
fn what_would_not_change_is_left_out_with_its_reason() {
    let mut bench = bench();
    bench.press("*b");
    let left_out = |bench: &Bench| {
        let states = states(bench).into_iter();
        let left_out = states.filter(|(_, state)| matches!(state, BulkItemState::LeftOut(_)));
        left_out.map(|(id, _)| id).collect::<HashSet<_>>()
    };
    // One is blocked already, one is revoked.
    assert_eq!(
        left_out(&bench),
        HashSet::from([keys()[4].id, keys()[7].id])
    );
    bench.press("y");
    assert_eq!(bench.sent.len(), keys().len() - 2);
    let revoked = Some(keys()[7].id.into());
    assert!(!bench.sent.iter().any(|pending| pending.plan.of == revoked));
    // Blocked ones alone are served again.
    let mut bench = self::bench();
    bench.press("jjjj<space>by");
    assert_eq!(*bench.sent[0].plan.kind, UNBLOCK);
    // Nothing to do: y does nothing.
    let mut bench = self::bench();
    bench.press("jjjjjjj<space>by");
    assert!(bench.sent.is_empty() && bench.screen().contains("nothing would change"));
}

#[test]
fn failures_are_listed_and_their_keys_stay_marked() {
    let mut bench = bench();
    bench.answer = Some(|pending| Message::Applied {
        operation: pending.operation,
        result: match pending.plan.of {
            Some(Scope::Key(id)) if id == keys()[1].id => {
                Err(ApplyError::No("it was used".to_owned()))
            }
            // What is not confirmed is looked up, and found not applied.
            Some(Scope::Key(id)) if id == keys()[2].id => {
                Err(ApplyError::Unknown("I/O".to_owned()))
            }
            _ => Ok(ActOutcome::default()),
        },
    });
    bench.press("<space><space><space>xX<enter>");
    assert!(
        bench.screen().contains("this is not how many"),
        "{}",
        bench.screen()
    );
    bench.press("<back>3<enter>y");
    let screen = bench.screen();
    assert!(screen.contains("1 of 3 applied, 2 failed"), "{screen}");
    assert!(screen.contains("it was used"), "{screen}");
    assert_eq!(bench.sent.len(), 3, "nothing is sent twice by itself");
    bench.press("<esc>");
    assert_eq!(bench.app.marks.len(), 2);
    assert!(!bench.app.marks.has(keys()[0].id));
}

#[test]
fn marks_survive_a_filter_and_are_undone() {
    let mut bench = bench();
    bench.press("<space>jjjm");
    assert_eq!(bench.app.marks.len(), 5, "a range from the last mark");
    bench.press("/customer<enter>");
    assert!(bench.screen().contains("5 MARKED"), "{}", bench.screen());
    bench.press("<esc>");
    assert!(bench.app.marks.is_empty() && !bench.app.keys.list.filter.is_empty());
    bench.press("u");
    assert_eq!(bench.app.marks.len(), 5);
    bench.press("uuu");
    assert!(bench.app.marks.is_empty());
    // One key at a time: what brings a secret.
    bench.press("<space>R");
    assert!(
        bench.screen().contains("one key at a time"),
        "{}",
        bench.screen()
    );
}

#[test]
fn much_money_is_typed_twice_also_when_it_is_many_times_a_little() {
    let mut bench = bench();
    bench.press("*t30<tab>inv<enter>");
    assert!(
        matches!(&bench.app.modal, Some(Modal::Form(form)) if form.fields.len() == 3),
        "39 times 30 is more than 1,000"
    );
    bench.app.options.read_only = true;
    bench.press("<esc>t");
    assert!(bench.screen().contains("--read-only"));
}

#[test]
fn many_are_sent_a_few_at_a_time() {
    let mut bench = bench();
    bench.press("*b");
    bench.answers = false;
    bench.press("y");
    assert_eq!(bench.sent.len(), 16);
    bench.press("<esc>q");
    assert!(
        matches!(bench.app.modal, Some(Modal::Bulk(_))) && !bench.app.quit,
        "it is not left before the outcome is known"
    );
    let operation = bench.sent[0].operation;
    bench.tell(Message::Applied {
        operation,
        result: Err(ApplyError::No("no".to_owned())),
    });
    assert_eq!(bench.sent.len(), 17);
}

#[test]
fn an_edit_of_many_changes_only_what_is_typed() {
    let mut bench = bench();
    bench.press("jj<space>jm<space>");
    bench.press("e<tab>2027-01-31<tab>none<tab>4<enter>");
    let screen = bench.screen();
    assert!(
        screen.contains("Edit: review · 2 keys")
            && screen.contains("Expires at 2027-01-31 · Rate none · Concurrency 4; all else stays"),
        "{screen}"
    );
    bench.press("y");
    let [one, other] = bench.sent.as_slice() else {
        panic!("{:?}", bench.sent)
    };
    for (pending, key) in [(one, &keys()[2]), (other, &keys()[3])] {
        assert_eq!(pending.plan.of, Some(key.id.into()));
        let said = json!({ "expires_at": "2027-01-31", "rate": null, "concurrency": 4 });
        assert_eq!(json!(pending.plan.body), said);
    }
    let mut bench = self::bench();
    bench.press("<space>e<tab><tab><tab><enter>");
    assert!(
        bench.screen().contains("type what to change"),
        "{}",
        bench.screen()
    );
}
