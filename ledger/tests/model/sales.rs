//! What a token that sells does in the model test: it reserves a dollar's worth, and books payments.

use farebox_ledger::*;

use super::common::*;
use super::facts::{a_payment, cents};

/// A sale by its number: reserves, prolongs, gives up, or books a payment, perhaps one that something was reserved for. Instants are left
/// out: each store has its own.
pub(super) async fn sale(
    ledger: &dyn Ledger,
    sale: u8,
    (number, operation): (u64, u64),
    (customer, amount, reference): (u64, i64, u64),
) -> String {
    let shop = new_token(1, 800, TokenRole::Sell, Some("1"));
    ledger.perform(shop).await.unwrap();
    let id = ReservationId::from_random(number);
    let of = CustomerId::made_for(key(customer));
    let operation = match sale {
        0..3 => NewReservation {
            id,
            prolongs: sale == 2,
            customer: (customer == 1).then_some(of),
            plan: None,
            credit: cents(amount),
            until: Timestamp::from_millis(clock::now().millis() + 600_000),
            act: act(operation, 400),
        }
        .into(),
        3 => EndReservation {
            id,
            act: act(operation, 400),
        }
        .into(),
        _ => NewPayment {
            reservation: (sale == 4).then_some(id),
            ..a_payment(customer, operation, amount, reference)
        }
        .into(),
    };
    match ledger.ask(asked(1, 400, operation)).await {
        Ok(answered) => match answered.outcome {
            Some(Outcome::Reservation(made)) => {
                format!("{} {} {:?}", made.id, made.credit, made.customer)
            }
            outcome => format!("{outcome:?}"),
        },
        Err(LedgerError::Refused(Refusal::SoldOut(refused))) => {
            format!("{} of {}", refused.most, refused.credit)
        }
        Err(other) => format!("{other:?}"),
    }
}
