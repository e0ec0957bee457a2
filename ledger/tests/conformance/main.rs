//! One suite for every store: each sentence of the `Ledger` contract as a test.
//!
//! Every test runs on the reference store, on SQLite and on PostgreSQL, and ends with `verify`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first surprise"
)]

mod access;
mod actors;
mod caps;
mod claims;
#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "each suite uses its own part")]
mod common;
mod costs;
mod credits;
mod customers;
mod defaults;
mod edits;
mod events;
mod grant_times;
mod grants;
mod history;
mod holds;
mod keys;
mod lists;
mod made;
mod plan_back;
mod plans;
mod reservations;
mod runs;
mod statements;
mod stolen;
mod taught;
mod tokens;
mod vouchers;
mod wishes;

use std::sync::Arc;

use access::{
    links_open_once, sessions_end_with_the_key, sessions_of_a_key_and_of_a_customer_are_bounded,
    slugs_keep_their_first_date,
};
use actors::{
    a_closed_customer_looks_and_does_nothing, a_key_that_was_used_is_not_reissued,
    an_owner_manages_its_own_customer_and_nothing_else,
    caps_of_seller_and_owner_stand_beside_each_other, nothing_moves_but_for_who_is_active,
};
use caps::{
    a_lowered_cap_cuts_no_hold, a_new_cap_counts_what_is_spent_and_held,
    caps_bound_holds_extensions_and_charges, caps_that_make_no_sense_are_refused,
    nobody_gets_past_the_last_dollar_of_a_cap,
};
use claims::{
    a_payment_of_another_sum_is_kept, a_payment_that_cannot_be_booked_is_kept,
    a_payment_told_five_times_is_booked_once, a_top_up_and_a_payment_of_one_name_are_the_same,
    any_order_of_messages_ends_in_the_same, what_goes_back_is_a_part_of_the_payment,
    what_is_not_there_is_a_claim_that_is_paid_first, what_went_back_is_taken_once,
};
use common::*;
use costs::costs_are_those_that_answers_told;
use credits::{
    adjustments_take_only_what_is_available, credits_obey_the_limits,
    credits_post_once_per_reference, references_are_one_in_every_spelling,
    refunds_never_exceed_their_charge,
};
use customers::{
    caps_of_both_bound_a_request, caps_of_customers_that_make_no_sense_are_refused,
    customers_are_found_and_forgotten, customers_are_suspended_resumed_and_closed,
    external_ids_are_any_text_that_can_be_typed_again, money_moves_between_customers,
    owners_make_keys, payments_keep_whom_they_are_addressed_to, several_keys_spend_one_purse,
    what_nobody_paid_is_told_from_what_was_paid,
};
use defaults::{
    a_default_binds_who_has_set_nothing, a_setting_of_its_own_wins,
    defaults_that_make_no_sense_are_refused, nobody_gets_past_the_last_dollar_of_a_default,
};
use edits::{
    an_edit_gives_no_external_id_that_another_has, edits_of_a_key_say_what_they_change,
    edits_of_different_settings_both_stay, what_is_said_of_a_person_is_added,
    who_has_a_price_list_is_listed,
};
use events::{
    a_balance_is_told_once_until_it_is_well, a_delivery_is_due_until_it_is_there,
    caps_are_told_at_80_and_at_100_per_cent, events_are_read_on_from_the_last_one,
    money_that_goes_back_is_told, what_happens_is_told_once,
};
use farebox_ledger::memory::MemoryLedger;
use farebox_ledger::*;
use grant_times::{
    a_cap_and_a_grant_bound_a_request_together, a_pending_grant_counts_once_it_begins,
    a_refund_after_the_end_is_a_grant_for_30_days, what_is_held_when_a_grant_ends_is_spent,
    what_nobody_paid_pays_no_claim,
};
use grants::{
    a_grant_is_taken_back_once, a_grants_reference_is_nobody_elses, grants_are_listed_and_told,
    grants_that_make_no_sense_are_refused, money_is_used_in_one_order, the_33rd_grant_is_refused,
    what_was_paid_is_told_from_what_was_given,
};
use history::{
    a_checkpoint_keeps_what_was_served, answers_are_found_by_their_own_id, classes_are_short_words,
    history_is_filtered_and_paged, usage_is_rolled_up_by_hour_and_slug,
    what_was_served_stays_with_the_entry,
};
use holds::{
    a_charge_beyond_the_balance_is_the_operators_loss, a_dropped_hold_is_settled_with_its_note,
    a_limit_is_granted_by_the_room, absurd_bills_are_refused_and_abandoned_ones_disputed,
    an_operation_id_is_spent_once, holds_are_refused_by_key_state, holds_move_and_checkpoint,
    holds_reserve_and_settle_once, recovery_settles_checkpoints_and_releases_the_rest,
};
use keys::{
    key_changes_are_applied_once_and_audited, keys_are_created_once_with_their_first_money,
    keys_that_have_ended_are_named, revoked_is_for_ever,
};
use lists::{
    an_act_is_found_by_its_operation, keys_are_listed_in_pages, keys_are_paged_by_what_moves,
    margins_are_by_key_target_and_day, several_keys_are_one_read,
};
use made::{
    a_made_key_gets_no_more_than_its_maker_has_room_for, a_repeated_order_makes_one_key,
    an_owner_key_names_reissues_and_ends_what_it_made, fifty_purses_hold_in_any_race,
    sixty_keys_are_made_a_minute_and_no_more,
    what_a_made_key_spends_counts_in_the_caps_of_its_maker,
};
use plan_back::{
    a_change_at_once_and_back_gains_nothing, a_reversal_after_a_change_takes_what_was_given,
    a_reversal_takes_no_more_than_the_payment, a_sale_that_cannot_be_booked_is_money,
    what_a_given_up_period_gets_back_is_credit_to_the_last, what_has_not_begun_goes_back_first,
};
use plans::{
    a_charge_beyond_its_window_is_paid_by_the_balance,
    a_paused_plan_waits_and_an_ended_one_is_not_renewed,
    a_period_is_promotional_and_no_grant_of_32, a_period_pays_first_and_the_balance_after_it,
    a_plan_that_stops_lets_nothing_else_pay, a_sale_is_booked_once_and_two_are_two_periods,
    a_subscription_is_found_by_its_id, a_voucher_gives_a_period_at_no_price,
    four_subscriptions_are_paid_24_periods_ahead, plans_that_make_no_sense_are_refused,
    two_subscriptions_of_one_plan_share_its_windows,
};
use reservations::{
    a_checkout_that_is_completed_unpaid_keeps_its_place,
    a_payment_takes_its_own_place_and_no_other, nothing_is_reserved_that_could_not_be_booked,
    what_is_reserved_counts_until_it_ends,
};
use runs::{
    names_beyond_the_most_of_a_month_are_others, requests_are_summed_by_the_run_that_they_name,
};
use stolen::{
    a_name_that_was_made_up_is_taken_over, a_recall_of_one_bad_day_fits,
    a_reversal_beyond_the_bound_waits_and_is_told,
    a_stolen_token_does_so_much_in_a_day_and_no_more,
};
use taught::{
    an_excess_counts_for_seven_days, what_targets_teach_is_added_up_and_halved,
    what_was_taught_before_a_reset_is_gone,
};
use tokens::{
    a_first_key_comes_with_its_customer_or_later, a_request_with_a_key_is_made_once,
    a_shop_does_its_own_business_and_no_other, a_token_credits_no_more_than_its_daily_bound,
    a_token_sells_plans_and_ends_what_it_sold, an_edit_of_what_was_changed_is_refused,
    references_find_their_entries, tokens_are_made_found_and_revoked,
};
use vouchers::{
    a_voucher_is_redeemed_once, of_some_lots_a_customer_redeems_one, one_of_two_gets_a_voucher,
};
use wishes::{
    a_month_has_no_more_wishes_than_its_rule_allows, a_payment_that_no_rule_wished_is_kept,
    a_rule_that_waited_is_found_when_its_time_has_come,
    a_wish_that_fails_rests_and_a_dispute_ends_the_rule,
    money_is_asked_for_when_a_settlement_crosses_the_threshold, names_of_wishes_are_theirs_alone,
};

macro_rules! stories {
    ($($name:ident),+ $(,)?) => {
        mod memory {
            $(#[test] fn $name() { super::common::run(super::$name(super::Arc::new(super::MemoryLedger::new()))); })+
        }
        mod sqlite {
            $(#[test] fn $name() {
                super::statements::begin();
                let (_dir, ledger) = super::common::sqlite();
                super::common::run(super::$name(ledger));
                super::statements::are_known();
            })+
        }
        mod postgres {
            $(#[test] fn $name() {
                super::statements::begin();
                super::common::on_postgres(async |ledger| super::$name(ledger).await);
                super::statements::are_known();
            })+
        }
    };
}

stories!(
    what_happens_is_told_once,
    a_balance_is_told_once_until_it_is_well,
    caps_are_told_at_80_and_at_100_per_cent,
    money_that_goes_back_is_told,
    events_are_read_on_from_the_last_one,
    a_delivery_is_due_until_it_is_there,
    several_keys_spend_one_purse,
    what_nobody_paid_is_told_from_what_was_paid,
    caps_of_both_bound_a_request,
    what_a_made_key_spends_counts_in_the_caps_of_its_maker,
    a_made_key_gets_no_more_than_its_maker_has_room_for,
    sixty_keys_are_made_a_minute_and_no_more,
    fifty_purses_hold_in_any_race,
    an_owner_key_names_reissues_and_ends_what_it_made,
    a_repeated_order_makes_one_key,
    customers_are_suspended_resumed_and_closed,
    customers_are_found_and_forgotten,
    payments_keep_whom_they_are_addressed_to,
    edits_of_different_settings_both_stay,
    edits_of_a_key_say_what_they_change,
    an_edit_gives_no_external_id_that_another_has,
    what_is_said_of_a_person_is_added,
    who_has_a_price_list_is_listed,
    money_moves_between_customers,
    owners_make_keys,
    external_ids_are_any_text_that_can_be_typed_again,
    caps_of_customers_that_make_no_sense_are_refused,
    a_lowered_cap_cuts_no_hold,
    a_new_cap_counts_what_is_spent_and_held,
    caps_bound_holds_extensions_and_charges,
    caps_that_make_no_sense_are_refused,
    nobody_gets_past_the_last_dollar_of_a_cap,
    a_default_binds_who_has_set_nothing,
    a_setting_of_its_own_wins,
    defaults_that_make_no_sense_are_refused,
    nobody_gets_past_the_last_dollar_of_a_default,
    a_payment_that_cannot_be_booked_is_kept,
    a_payment_of_another_sum_is_kept,
    what_goes_back_is_a_part_of_the_payment,
    a_top_up_and_a_payment_of_one_name_are_the_same,
    a_payment_told_five_times_is_booked_once,
    any_order_of_messages_ends_in_the_same,
    what_is_not_there_is_a_claim_that_is_paid_first,
    what_went_back_is_taken_once,
    keys_are_created_once_with_their_first_money,
    keys_are_listed_in_pages,
    keys_are_paged_by_what_moves,
    several_keys_are_one_read,
    an_act_is_found_by_its_operation,
    a_checkpoint_keeps_what_was_served,
    classes_are_short_words,
    what_was_served_stays_with_the_entry,
    key_changes_are_applied_once_and_audited,
    revoked_is_for_ever,
    keys_that_have_ended_are_named,
    what_targets_teach_is_added_up_and_halved,
    an_excess_counts_for_seven_days,
    what_was_taught_before_a_reset_is_gone,
    credits_post_once_per_reference,
    references_are_one_in_every_spelling,
    credits_obey_the_limits,
    adjustments_take_only_what_is_available,
    refunds_never_exceed_their_charge,
    holds_reserve_and_settle_once,
    holds_are_refused_by_key_state,
    an_operation_id_is_spent_once,
    a_limit_is_granted_by_the_room,
    holds_move_and_checkpoint,
    a_charge_beyond_the_balance_is_the_operators_loss,
    absurd_bills_are_refused_and_abandoned_ones_disputed,
    a_dropped_hold_is_settled_with_its_note,
    recovery_settles_checkpoints_and_releases_the_rest,
    history_is_filtered_and_paged,
    answers_are_found_by_their_own_id,
    usage_is_rolled_up_by_hour_and_slug,
    margins_are_by_key_target_and_day,
    costs_are_those_that_answers_told,
    requests_are_summed_by_the_run_that_they_name,
    names_beyond_the_most_of_a_month_are_others,
    sessions_end_with_the_key,
    sessions_of_a_key_and_of_a_customer_are_bounded,
    links_open_once,
    slugs_keep_their_first_date,
    tokens_are_made_found_and_revoked,
    a_token_sells_plans_and_ends_what_it_sold,
    a_shop_does_its_own_business_and_no_other,
    a_first_key_comes_with_its_customer_or_later,
    a_token_credits_no_more_than_its_daily_bound,
    a_request_with_a_key_is_made_once,
    an_edit_of_what_was_changed_is_refused,
    references_find_their_entries,
    nothing_moves_but_for_who_is_active,
    a_closed_customer_looks_and_does_nothing,
    an_owner_manages_its_own_customer_and_nothing_else,
    caps_of_seller_and_owner_stand_beside_each_other,
    a_key_that_was_used_is_not_reissued,
    what_is_reserved_counts_until_it_ends,
    a_payment_takes_its_own_place_and_no_other,
    a_checkout_that_is_completed_unpaid_keeps_its_place,
    nothing_is_reserved_that_could_not_be_booked,
    a_stolen_token_does_so_much_in_a_day_and_no_more,
    a_reversal_beyond_the_bound_waits_and_is_told,
    a_recall_of_one_bad_day_fits,
    a_name_that_was_made_up_is_taken_over,
    a_voucher_is_redeemed_once,
    of_some_lots_a_customer_redeems_one,
    one_of_two_gets_a_voucher,
    money_is_used_in_one_order,
    the_33rd_grant_is_refused,
    grants_that_make_no_sense_are_refused,
    a_grant_is_taken_back_once,
    what_is_held_when_a_grant_ends_is_spent,
    a_refund_after_the_end_is_a_grant_for_30_days,
    a_grants_reference_is_nobody_elses,
    a_pending_grant_counts_once_it_begins,
    what_nobody_paid_pays_no_claim,
    a_cap_and_a_grant_bound_a_request_together,
    what_was_paid_is_told_from_what_was_given,
    grants_are_listed_and_told,
    a_period_pays_first_and_the_balance_after_it,
    a_charge_beyond_its_window_is_paid_by_the_balance,
    a_plan_that_stops_lets_nothing_else_pay,
    plans_that_make_no_sense_are_refused,
    four_subscriptions_are_paid_24_periods_ahead,
    a_sale_is_booked_once_and_two_are_two_periods,
    a_voucher_gives_a_period_at_no_price,
    a_change_at_once_and_back_gains_nothing,
    a_reversal_takes_no_more_than_the_payment,
    a_reversal_after_a_change_takes_what_was_given,
    what_has_not_begun_goes_back_first,
    a_paused_plan_waits_and_an_ended_one_is_not_renewed,
    a_period_is_promotional_and_no_grant_of_32,
    a_sale_that_cannot_be_booked_is_money,
    two_subscriptions_of_one_plan_share_its_windows,
    a_subscription_is_found_by_its_id,
    what_a_given_up_period_gets_back_is_credit_to_the_last,
    money_is_asked_for_when_a_settlement_crosses_the_threshold,
    a_month_has_no_more_wishes_than_its_rule_allows,
    a_wish_that_fails_rests_and_a_dispute_ends_the_rule,
    a_payment_that_no_rule_wished_is_kept,
    names_of_wishes_are_theirs_alone,
    a_rule_that_waited_is_found_when_its_time_has_come,
);

fn refused<T: std::fmt::Debug>(result: Result<T, LedgerError>) -> Refusal {
    match result {
        Err(LedgerError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

async fn account(ledger: &dyn Ledger, number: u64) -> Account {
    ledger
        .find_key(key(number))
        .await
        .unwrap()
        .unwrap()
        .customer
        .account
}
