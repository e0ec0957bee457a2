//! The rules of money: what each operation does to an account.
//!
//! Pure: no clock, no ids, no store. Every store uses these rules and no others. Each rule returns a new account that satisfies `0
//! ≤ held`, `0 ≤ spent` and `spent + held ≤ credit`, or a refusal that changes nothing.
//!
//! Rows of docs/interface.md: `top_up_and_retry`.

use crate::{Amount, OperationId, Refusal};

/// The three numbers of a customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Account {
    /// The sum of everything paid in (adjustments included).
    pub credit: Amount,
    /// The sum of everything charged, minus refunds.
    pub spent: Amount,
    /// Reserved by running requests.
    pub held: Amount,
}

/// The effect of ending one hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldEffect {
    /// The account afterwards.
    pub account: Account,
    /// Taken from the customer.
    pub charge: Amount,
    /// Cost that the customer could not pay.
    pub loss: Amount,
}

impl Account {
    /// `credit − spent`.
    pub fn balance(&self) -> Amount {
        Amount::from_picos(self.credit.picos().saturating_sub(self.spent.picos()))
    }

    /// `balance − held`.
    pub fn available(&self) -> Amount {
        Amount::from_picos(self.balance().picos().saturating_sub(self.held.picos()))
    }

    /// Whether the three numbers obey the invariants.
    pub fn is_sound(&self) -> bool {
        !self.credit.is_negative()
            && !self.spent.is_negative()
            && !self.held.is_negative()
            && self
                .spent
                .checked_add(self.held)
                .is_some_and(|used| used <= self.credit)
    }

    /// Gives a hold another size: `now` is what it has.
    ///
    /// # Errors
    /// [`Refusal::Insufficient`]; [`Refusal::Limit`] for a negative size.
    pub fn resize(self, now: Amount, to: Amount) -> Result<Self, Refusal> {
        not_negative(to, "a hold")?;
        let more = to.checked_sub(now).ok_or_else(overflow)?;
        // A smaller hold is never refused, whatever is available: it only gives money back.
        if more > self.available().max(Amount::ZERO) {
            return Err(self.insufficient(to));
        }
        let held = self.held.checked_add(more).ok_or_else(overflow)?;
        Ok(Self { held, ..self })
    }

    /// Ends a hold of size `held`. The charge is `min(cost, held + available)`, or less where caps have room for less than what is
    /// available; the rest of the cost is the operator's loss.
    ///
    /// # Errors
    /// [`Refusal::Limit`] for a negative cost or one above [`Amount::MAX_COST`].
    pub fn finish(self, held: Amount, cost: Amount, room: Amount) -> Result<HoldEffect, Refusal> {
        not_negative(cost, "a cost")?;
        if cost > Amount::MAX_COST {
            return Err(Refusal::Limit(format!(
                "a cost of {cost} for one request is implausible"
            )));
        }
        let beyond = self.available().min(room);
        let payable = held.checked_add(beyond).ok_or_else(overflow)?;
        let charge = cost.min(payable);
        let loss = cost.checked_sub(charge).ok_or_else(overflow)?;
        let spent = self.spent.checked_add(charge).ok_or_else(overflow)?;
        let held = self.held.checked_sub(held).ok_or_else(overflow)?;
        Ok(HoldEffect {
            account: Self {
                spent,
                held,
                ..self
            },
            charge,
            loss,
        })
    }

    /// Ends a hold of size `held` without a charge.
    ///
    /// # Errors
    /// As [`Account::finish`].
    pub fn release(self, held: Amount) -> Result<Self, Refusal> {
        self.finish(held, Amount::ZERO, Amount::ZERO)
            .map(|ending| ending.account)
    }

    /// Pays money in.
    ///
    /// # Errors
    /// [`Refusal::Limit`] when the amount is not positive or a limit would be passed.
    pub fn top_up(self, amount: Amount) -> Result<Self, Refusal> {
        positive(amount, "a top-up")?;
        if amount > Amount::MAX_TOP_UP {
            return Err(Refusal::Limit(format!(
                "a top-up is at most {}",
                Amount::MAX_TOP_UP
            )));
        }
        self.pay_in(amount)
    }

    /// Corrects the credit in either direction; downwards only as far as money is available.
    ///
    /// # Errors
    /// [`Refusal::Limit`] for zero or too much, [`Refusal::Insufficient`] when a downward correction exceeds what is available.
    pub fn adjust(self, amount: Amount) -> Result<Self, Refusal> {
        if amount == Amount::ZERO {
            return Err(Refusal::Limit("an adjustment must not be zero".to_owned()));
        }
        if amount.is_positive() {
            if amount > Amount::MAX_TOP_UP {
                return Err(Refusal::Limit(format!(
                    "an adjustment is at most {}",
                    Amount::MAX_TOP_UP
                )));
            }
            return self.pay_in(amount);
        }
        let taken = amount.checked_neg().ok_or_else(overflow)?;
        if taken > self.available() {
            return Err(self.insufficient(taken));
        }
        let credit = self.credit.checked_sub(taken).ok_or_else(overflow)?;
        Ok(Self { credit, ..self })
    }

    /// Takes money out that an operator writes off.
    ///
    /// # Errors
    /// [`Refusal::Limit`] unless the amount is negative, [`Refusal::Insufficient`] when it exceeds what is available.
    pub fn write_off(self, amount: Amount) -> Result<Self, Refusal> {
        if !amount.is_negative() {
            let text = "what is written off is taken, so its amount is below zero";
            return Err(Refusal::Limit(text.to_owned()));
        }
        self.adjust(amount)
    }

    /// Moves money to another account: what is available, of both.
    ///
    /// # Errors
    /// [`Refusal::Limit`] when the amount is not positive or a limit of the other would be passed, [`Refusal::Insufficient`] when it
    /// exceeds what is available.
    pub fn give(self, into: Self, amount: Amount) -> Result<(Self, Self), Refusal> {
        positive(amount, "a move")?;
        if amount > self.available() {
            return Err(self.insufficient(amount));
        }
        let credit = self.credit.checked_sub(amount).ok_or_else(overflow)?;
        Ok((Self { credit, ..self }, into.pay_in(amount)?))
    }

    /// Gives back what was taken for a payment that went back and came again. Its customer had it before, so it may pass the highest
    /// balance.
    ///
    /// # Errors
    /// [`Refusal::Limit`] above what a customer can be paid in its lifetime.
    pub fn give_back(self, amount: Amount) -> Result<Self, Refusal> {
        self.credited(amount)
    }

    /// Refunds part of one charged request, of which `charged − refunded` is left to refund.
    ///
    /// # Errors
    /// [`Refusal::NotRefundable`] above what is left, [`Refusal::Limit`] when the balance would be too large.
    pub fn refund(
        self,
        amount: Amount,
        request: OperationId,
        charged: Amount,
        refunded: Amount,
    ) -> Result<Self, Refusal> {
        positive(amount, "a refund")?;
        let refundable = charged.checked_sub(refunded).ok_or_else(overflow)?;
        if amount > refundable {
            return Err(Refusal::NotRefundable {
                request,
                refundable,
            });
        }
        let spent = self.spent.checked_sub(amount).ok_or_else(overflow)?;
        Self { spent, ..self }.within_limits()
    }

    fn pay_in(self, amount: Amount) -> Result<Self, Refusal> {
        self.credited(amount)?.within_limits()
    }

    fn credited(self, amount: Amount) -> Result<Self, Refusal> {
        let too_much = || {
            Refusal::Limit(format!(
                "a customer can be paid at most {} in its lifetime",
                Amount::MAX_LIFETIME_CREDIT
            ))
        };
        let credit = self.credit.checked_add(amount).ok_or_else(too_much)?;
        if credit > Amount::MAX_LIFETIME_CREDIT {
            return Err(too_much());
        }
        Ok(Self { credit, ..self })
    }

    fn within_limits(self) -> Result<Self, Refusal> {
        if self.balance() > Amount::MAX_BALANCE {
            return Err(Refusal::Limit(format!(
                "a customer's balance is at most {}",
                Amount::MAX_BALANCE
            )));
        }
        Ok(self)
    }

    pub(crate) fn insufficient(&self, needed: Amount) -> Refusal {
        Refusal::Insufficient {
            needed,
            available: self.available(),
            held: self.held,
        }
    }
}

/// The sum of two amounts of one customer, which its lifetime credit bounds far below where a sum could saturate.
pub(crate) fn sum(a: Amount, b: Amount) -> Amount {
    Amount::from_picos(a.picos().saturating_add(b.picos()))
}

/// The difference of two amounts, never below zero.
pub(crate) fn less(a: Amount, b: Amount) -> Amount {
    Amount::from_picos(a.picos().saturating_sub(b.picos()).max(0))
}

fn positive(amount: Amount, what: &str) -> Result<(), Refusal> {
    if amount.is_positive() {
        Ok(())
    } else {
        Err(Refusal::Limit(format!("{what} must be more than zero")))
    }
}

fn not_negative(amount: Amount, what: &str) -> Result<(), Refusal> {
    if amount.is_negative() {
        Err(Refusal::Limit(format!("{what} must not be negative")))
    } else {
        Ok(())
    }
}

fn overflow() -> Refusal {
    Refusal::Limit("the amounts are too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picos(picos: i64) -> Amount {
        Amount::from_picos(picos)
    }

    fn account(credit: i64, spent: i64, held: i64) -> Account {
        Account {
            credit: picos(credit),
            spent: picos(spent),
            held: picos(held),
        }
    }

    #[test]
    fn holds_stay_within_what_is_available() {
        let sized = |now: i64, to: i64| account(100, 10, 20).resize(picos(now), picos(to));
        assert_eq!(sized(0, 70).unwrap(), account(100, 10, 90));
        assert_eq!(sized(20, 90).unwrap(), account(100, 10, 90));
        assert_eq!(sized(20, 5).unwrap(), account(100, 10, 5));
        let refused = Refusal::Insufficient {
            needed: picos(71),
            available: picos(70),
            held: picos(20),
        };
        assert_eq!(sized(0, 71), Err(refused));
        assert!(sized(0, -1).is_err() && sized(20, 91).is_err());
    }

    #[test]
    fn a_charge_never_makes_debt() {
        let all = picos(1_000);
        let ending = account(100, 10, 50)
            .finish(picos(30), picos(200), all)
            .unwrap();
        assert_eq!(
            ending,
            HoldEffect {
                account: account(100, 80, 20),
                charge: picos(70),
                loss: picos(130)
            }
        );
        assert_eq!(
            account(100, 10, 50).release(picos(30)).unwrap(),
            account(100, 10, 20)
        );
        let capped = account(100, 10, 50).finish(picos(30), picos(200), picos(5));
        assert_eq!(capped.unwrap().charge, picos(35));
        assert!(account(100, 0, 0).finish(picos(0), picos(-1), all).is_err());
    }

    #[test]
    fn credits_obey_the_limits() {
        assert!(Account::default().top_up(picos(0)).is_err());
        assert!(Account::default().top_up(Amount::MAX_TOP_UP).is_ok());
        assert!(
            Account::default()
                .top_up(picos(Amount::MAX_TOP_UP.picos() + 1))
                .is_err()
        );
        let full = account(Amount::MAX_BALANCE.picos(), 0, 0);
        assert!(full.top_up(picos(1)).is_err());
        let old = account(
            Amount::MAX_LIFETIME_CREDIT.picos(),
            Amount::MAX_LIFETIME_CREDIT.picos(),
            0,
        );
        assert!(old.top_up(picos(1)).is_err());
        assert_eq!(
            account(100, 10, 20).adjust(picos(-70)).unwrap(),
            account(30, 10, 20)
        );
        assert!(account(100, 10, 20).adjust(picos(-71)).is_err());
        assert!(account(100, 10, 20).adjust(picos(0)).is_err());
        assert!(account(100, 10, 20).adjust(picos(i64::MIN)).is_err());
    }

    #[test]
    fn refunds_never_exceed_their_charge() {
        let request = OperationId::from_bytes([1; 16]);
        assert_eq!(
            account(100, 60, 0)
                .refund(picos(20), request, picos(50), picos(30))
                .unwrap(),
            account(100, 40, 0)
        );
        let refused = Refusal::NotRefundable {
            request,
            refundable: picos(20),
        };
        assert_eq!(
            account(100, 60, 0).refund(picos(21), request, picos(50), picos(30)),
            Err(refused)
        );
    }
}
