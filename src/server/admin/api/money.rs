//! Money under `/api/v1`: payments, corrections, moves, and what goes back.

use std::sync::Arc;

use farebox_ledger::{
    CreditKind, Gross, OperationId, Outcome, PaidSum, PaymentMoved, PaymentStatus, ReversalKind,
    UnappliedEnd,
};
use serde_json::{Value, json};

use super::answer::{ApiError, ApiReply};
use super::call::{ApiCall, ShowOutcome};
use super::table::ApiTask;
use crate::proxy::record;
use crate::selling::customers::PersonalEdit;
use crate::selling::{documents, money};

pub(super) async fn top_up(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let amount = call.body.usd("amount")?.unwrap_or_default();
    let gross = call.body.gross("gross")?;
    let paid = match (call.body.text("currency"), gross) {
        (Some(currency), Some(gross)) => Some(PaidSum {
            currency,
            gross,
            tax: call.body.gross("tax")?.unwrap_or_default(),
        }),
        (None, None) if call.body.gross("tax")?.is_none() => None,
        _ => {
            let message = "`currency` and `gross` go together, and `tax` with them: what was paid, tax included";
            return Err(ApiError::bad("missing_field", message));
        }
    };
    let reference = call.body.required("reference");
    let addressee = PersonalEdit {
        name: call.body.text("name"),
        address: call.body.text("address"),
        ..PersonalEdit::default()
    };
    let named = (reference, addressee.data());
    let deed = money::pay(call.customer_id()?, amount, paid, named, call.act());
    call.perform_as(deed, moved(call)).await
}

/// What a payment came to: 202 if it, or what went back of it, could not be booked, 200 if it was known. Its customer and its balance are
/// shown to those who may read it.
fn moved(call: &ApiCall<'_>) -> ShowOutcome {
    let (token, made) = (call.token.clone(), call.route.status);
    Arc::new(move |outcome| {
        let mut document = documents::outcome(outcome);
        let Outcome::Payment(moved) = outcome else {
            return (made, document);
        };
        if !token.may_read(&moved.customer) {
            document["customer"] = Value::Null;
            if let Some(balance) = document.pointer_mut("/entry/balance_after") {
                *balance = Value::Null;
            }
        }
        (status(moved, made), document)
    })
}

fn status(moved: &PaymentMoved, made: u16) -> u16 {
    match moved.payment.status {
        PaymentStatus::Unapplied { .. } => 202,
        _ if moved.entry.is_none() && !moved.payment.waiting.is_empty() => 202,
        _ if moved.repeated => 200,
        _ => made,
    }
}

pub(super) async fn reverse(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let customer = call.customer_id()?;
    let payment = call.body.required("payment");
    if let Some(known) = call.ledger().payment(&payment).await?
        && known.customer != customer
    {
        let message = format!(
            "payment {payment:?} is of customer {}; send this there",
            known.customer
        );
        let error = ApiError::new(409, "payment_of_another_customer", message);
        return Err(error.with(json!({ "customer": known.customer })));
    }
    let kind = match call.body.required("kind").as_str() {
        "refund" => ReversalKind::Refund,
        "dispute" => ReversalKind::Dispute,
        _ => ReversalKind::DisputeWon,
    };
    let cumulative = call.body.gross("cumulative")?.unwrap_or(Gross::ZERO);
    let reference = call.body.required("reference");
    let deed = money::reverse(payment, kind, cumulative, reference, call.act());
    call.perform_as(deed, moved(call)).await
}

pub(super) async fn adjust(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let amount = call.body.correction("amount")?.unwrap_or_default();
    let kind = CreditKind::Adjust {
        reason: call.body.required("reason"),
    };
    let reference = call.body.required("reference");
    let deed = money::credit(call.customer_id()?, kind, amount, &reference, call.act());
    call.perform(deed).await
}

pub(super) async fn give(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let from = call.customer_id()?;
    let amount = call.body.usd("amount")?.unwrap_or_default();
    let Some(into) = call.body.customer("into")? else {
        return Err(ApiError::bad("missing_field", "`into` is missing"));
    };
    let reference = call.body.required("reference");
    call.perform(money::give(from, into, amount, reference, call.act()))
        .await
}

pub(super) async fn end_unapplied(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let end = match (call.route.task, call.body.customer("to")?) {
        (ApiTask::Assign, Some(to)) => UnappliedEnd::Assign(to),
        _ => UnappliedEnd::Return {
            reason: call.body.required("reason"),
        },
    };
    let payment = call.parameter().to_owned();
    let deed = money::end_unapplied(payment, end, call.act());
    call.perform_as(deed, moved(call)).await
}

pub(super) async fn refund(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let id = call.parameter();
    let no_charge = || {
        ApiError::new(
            404,
            "request_not_found",
            format!("there is no charge of {id}"),
        )
    };
    let request: OperationId = record::operation(id).ok_or_else(no_charge)?;
    let amount = call.body.usd("amount")?.unwrap_or_default();
    let (reason, reference) = (
        call.body.required("reason"),
        call.body.required("reference"),
    );
    let deed = money::refund(
        call.ledger(),
        request,
        reason,
        amount,
        &reference,
        call.act(),
    );
    call.perform(deed.await?.ok_or_else(no_charge)?).await
}
