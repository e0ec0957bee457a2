//! Plans while months pass: each story on every store, under a clock that stands until the story moves it. The clock is the process's, so
//! one story runs at a time.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first surprise"
)]

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;
#[path = "conformance/plans.rs"]
#[expect(dead_code, reason = "its stories are told where no time passes")]
mod plans;
#[path = "conformance/plan_times.rs"]
mod stories;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farebox_ledger::memory::MemoryLedger;
use farebox_ledger::*;

fn refused<T: std::fmt::Debug>(result: Result<T, LedgerError>) -> Refusal {
    match result {
        Err(LedgerError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

async fn account(ledger: &dyn Ledger, number: u64) -> Account {
    let found = ledger.find_key(common::key(number)).await.unwrap();
    found.unwrap().customer.account
}

/// Who moves the clock.
struct ClockTurn {
    _alone: MutexGuard<'static, ()>,
}

static TURN: Mutex<()> = Mutex::new(());

impl ClockTurn {
    fn take() -> Self {
        let _alone = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        Self { _alone }
    }
}

impl Drop for ClockTurn {
    fn drop(&mut self) {
        clock::stand_at(None);
    }
}

macro_rules! stories {
    ($($name:ident),+ $(,)?) => {
        mod memory {
            $(#[test] fn $name() {
                let _turn = super::ClockTurn::take();
                super::common::run(super::stories::$name(super::Arc::new(super::MemoryLedger::new())));
            })+
        }
        mod sqlite {
            $(#[test] fn $name() {
                let _turn = super::ClockTurn::take();
                let (_dir, ledger) = super::common::sqlite();
                super::common::run(super::stories::$name(ledger));
            })+
        }
        mod postgres {
            $(#[test] fn $name() {
                let _turn = super::ClockTurn::take();
                super::common::on_postgres(async |ledger| super::stories::$name(ledger).await);
            })+
        }
    };
}

stories!(
    an_early_renewal_loses_no_days,
    months_end_with_their_last_day,
    late_payments_begin_at_the_end_or_at_the_payment,
    what_is_left_is_carried_up_to_a_sum,
    periods_that_nobody_saw_begin_one_after_the_other,
    windows_go_on_over_periods,
    a_charge_belongs_to_the_windows_of_its_hold,
    a_window_of_hours_begins_with_a_hold,
    a_window_that_is_over_and_unheld_is_forgotten,
    buying_again_resets_nothing,
    pausing_keeps_days_and_allowance,
    an_ended_plan_charges_nothing,
    a_change_takes_effect_with_what_is_not_paid,
    what_comes_back_after_the_end_is_a_grant,
    a_dispute_after_the_end_takes_the_price,
    a_hold_goes_on_into_the_next_period,
    what_is_used_is_told_once,
);
