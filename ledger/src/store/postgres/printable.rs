//! PostgreSQL's texts cannot contain the character U+0000, but text from outside may. It is replaced before anything is hashed, so
//! that no bill is refused because of a byte that a provider sent.

use std::sync::Arc;

use crate::batch::operation::Operation;
use crate::{
    Bill, Change, Credit, CreditKind, CustomerAct, CustomerSettings, KeySettings, NewCustomer,
    NewKey, Taught,
};

fn clean(text: &mut String) {
    if text.contains('\0') {
        *text = text.replace('\0', "\u{fffd}");
    }
}

fn is_printable(bill: &Bill) -> bool {
    let texts = [
        bill.slug.as_str(),
        &bill.family,
        &bill.target,
        &bill.served.account,
        bill.end_reason.as_str(),
    ];
    !texts
        .into_iter()
        .chain(bill.answer_id.as_deref())
        .any(|text| text.contains('\0'))
}

fn bill(bill: &mut Bill) {
    [
        &mut bill.slug,
        &mut bill.family,
        &mut bill.target,
        &mut bill.served.account,
    ]
    .into_iter()
    .for_each(clean);
    bill.answer_id.iter_mut().for_each(clean);
    if bill.end_reason.as_str().contains('\0') {
        bill.end_reason = bill
            .end_reason
            .as_str()
            .replace('\0', "\u{fffd}")
            .as_str()
            .into();
    }
    // Facts and lines are stored as JSON, which writes the character as an escape of six.
}

fn settings(settings: &mut KeySettings) {
    clean(&mut settings.label);
}

/// An external id with this character is refused, and personal data is stored as JSON.
fn customer_settings(settings: &mut CustomerSettings) {
    clean(&mut settings.label);
    settings.price_list.iter_mut().for_each(clean);
}

fn key(new: &mut NewKey) {
    settings(&mut new.settings);
    clean(&mut new.act.actor);
}

fn credit(new: &mut Credit) {
    clean(&mut new.actor);
    match &mut new.kind {
        CreditKind::Adjust { reason }
        | CreditKind::WriteOff { reason }
        | CreditKind::Refund { reason, .. } => clean(reason),
        CreditKind::TopUp => {}
    }
}

fn customer(new: &mut NewCustomer) {
    customer_settings(&mut new.settings);
    clean(&mut new.act.actor);
}

fn taught(new: &mut Taught) {
    let lessons = new.lessons.iter_mut().map(|lesson| &mut lesson.target);
    let excesses = new.excesses.iter_mut().map(|excess| &mut excess.target);
    lessons.chain(excesses).for_each(clean);
}

/// The operation in storable form.
pub(super) fn printable(mut operation: Operation) -> Operation {
    match &mut operation {
        Operation::Create(new) => key(new),
        Operation::Change(change) => {
            clean(&mut change.act.actor);
            if let Change::Set(new) = &mut change.change {
                settings(new);
            }
        }
        Operation::Credit(new) => credit(new),
        Operation::CreateCustomer(new) => customer(new),
        Operation::Enrol(both) => {
            customer(&mut both.0);
            key(&mut both.1);
        }
        Operation::PayFirst(both) => {
            customer(&mut both.0);
            clean(&mut both.1.act.actor);
        }
        Operation::Asked(asked) => asked.operation = printable(asked.operation.clone()),
        // A label with this character is refused.
        Operation::CreateToken(new) => clean(&mut new.act.actor),
        Operation::CreateLot(new) => clean(&mut new.act.actor),
        Operation::Redeem(new) => clean(&mut new.act.actor),
        Operation::VoidLot { act, .. } | Operation::RevokeToken { act, .. } => {
            clean(&mut act.actor)
        }
        Operation::ChangeCustomer(change) => {
            clean(&mut change.act.actor);
            if let CustomerAct::Set(new) = &mut change.change {
                customer_settings(new);
            }
        }
        Operation::Move(moved) => clean(&mut moved.act.actor),
        Operation::Pay(new) => clean(&mut new.act.actor),
        Operation::Reverse(new) => clean(&mut new.act.actor),
        // A reason with this character is refused.
        Operation::EndUnapplied(ending) => clean(&mut ending.act.actor),
        Operation::Open(new) => [&mut new.slug, &mut new.family].into_iter().for_each(clean),
        Operation::MoveHold(moved) => moved.checkpoint.iter_mut().for_each(bill),
        // Shared with its hold, so it is copied only if something has to be replaced.
        Operation::Finish(finish) | Operation::Resolve(finish) => {
            if !is_printable(&finish.bill) {
                bill(&mut Arc::make_mut(finish).bill);
            }
        }
        Operation::Publish { slugs, .. } => slugs.iter_mut().for_each(clean),
        Operation::Teach(new) => taught(new),
        Operation::ForgetTarget(target) => clean(target),
        Operation::OwnCost(own) => clean(&mut own.target),
        Operation::Files(act, _) => {
            clean(&mut act.actor);
            clean(&mut act.details);
        }
        Operation::CreateLink { act, .. } => clean(&mut act.actor),
        Operation::BeginEpoch { .. }
        | Operation::JudgeTopUp { .. }
        | Operation::Recover { .. }
        | Operation::ConsumeLink { .. }
        | Operation::OpenSession(_)
        // Its words are printable when they are written.
        | Operation::Deliver(_)
        | Operation::CloseSessions(_)
        | Operation::CloseSession(_)
        | Operation::MarkUsed { .. } => {}
    }
    operation
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Finish, OperationId, Timestamp};

    #[test]
    fn the_one_character_that_cannot_be_stored_is_replaced() {
        let mut bill = Bill {
            target: "a\0b".to_owned(),
            answer_id: Some("\0".to_owned()),
            ..Bill::default()
        };
        bill.end_reason = "x\0".into();
        let finish = Finish {
            request: OperationId::from_bytes([1; 16]),
            bill,
            at: Timestamp::from_millis(0),
        };
        let Operation::Finish(cleaned) = printable(Operation::Finish(Arc::new(finish))) else {
            unreachable!()
        };
        let texts = (
            cleaned.bill.target.as_str(),
            cleaned.bill.answer_id.as_deref(),
            cleaned.bill.end_reason.as_str(),
        );
        assert_eq!(texts, ("a\u{fffd}b", Some("\u{fffd}"), "x\u{fffd}"));
    }
}
