//! Every path of `/api/v1`, as data: the router, the check of roles, the reading of bodies, what answers and the OpenAPI document come
//! from it.

use std::sync::LazyLock;

use farebox_ledger::{GrantId, SubscriptionId};
use farebox_selling::auto_top_up::{
    ClearAutoTopUp, OwnerVisit, SetAutoTopUp, TopUpFailed, TopUpFailedDocument, VisitDocument,
    WantedDocument,
};
use farebox_selling::cap::{CapsDocument, ClearCap, SetCap};
use farebox_selling::customer::{
    Close, CreateCustomer, CustomerDocument, EditCustomer, Erase, Resume, Suspend, WhichCustomers,
};
use farebox_selling::entry::{EntryDocument, MarginsDocument, UsageDocument};
use farebox_selling::event::EventDocument;
use farebox_selling::grant::{GiveGrant, GrantDocument, TakeGrantBack, WhichGrants};
use farebox_selling::key::{
    Block, CreateKey, EditKey, KeyDocument, Reissue, Revoke, Rotate, Unblock,
};
use farebox_selling::link::{LinkDocument, MakeLink};
use farebox_selling::paper::{ReceiptDocument, StatementDocument};
use farebox_selling::payment::{
    Adjust, Assign, MoveMoney, MovedDocument, PaymentDocument, PaymentMovedDocument,
    PostedDocument, Refund, Return, Reverse, TopUp,
};
use farebox_selling::plan::{
    EndPlan, HaveOtherPlan, PausePlan, PlanSoldDocument, ResumePlan, SellPlan,
};
use farebox_selling::request::{RequestDocument, ShopDocument};
use farebox_selling::reservation::{EndReserved, ReservationDocument, Reserve};
use farebox_selling::subscription::{SoldPlanDocument, SubscriptionDocument, WhichSubscriptions};
use farebox_selling::token::TokenDocument;
use farebox_selling::voucher::{CreateLot, LotDocument, VoidVouchers};
use farebox_selling::waiting::WaitingThing;
use serde_json::Value;

use super::pages::ListPage;
use super::route::{ApiRoute, Least, act, by, edit, get};
use super::{auto_top_up, customers, grants, keys, lots, money, papers, plans, reads};
use crate::config::TableRow;

/// Every path. Examples are run in this order.
pub(super) static ROUTES: LazyLock<Vec<ApiRoute>> = LazyLock::new(|| {
    let mut all = of_customers();
    all.extend(of_keys());
    all.extend(of_books());
    all.extend(last());
    all
});

#[rustfmt::skip]
fn of_customers() -> Vec<ApiRoute> {
    vec![
        get("/openapi.json", Least::Anybody, "OpenApi", by!(reads::reserved), "This document").answers::<Value>(),
        act::<CreateCustomer>("/customers", Least::Sell).made().answers::<CustomerDocument>().shows(customers::created),
        get("/customers", Least::Own, "Customers", by!(customers::list), "Customers, oldest first").lists::<CustomerDocument>().asked::<ListPage>().asked::<WhichCustomers>(),
        get("/customers/{customer}", Least::Own, "Customer", by!(customers::show), "One customer: money, limits, caps, personal data and its keys").answers::<CustomerDocument>(),
        edit::<EditCustomer>("/customers/{customer}", by!(customers::edit)).answers::<CustomerDocument>(),
        act::<CreateKey>("/customers/{customer}/keys", Least::Sell).made().answers::<KeyDocument>(),
        get("/customers/{customer}/keys", Least::Own, "KeysOf", by!(keys::list), "A customer's keys, oldest first").lists::<KeyDocument>().asked::<ListPage>().asked::<keys::KeysQuery>(),
        act::<TopUp>("/customers/{customer}/top-ups", Least::Sell).made().answers::<PaymentMovedDocument>().shows(money::moved),
        act::<SetAutoTopUp>("/customers/{customer}/auto-top-up", Least::Sell).answers::<CustomerDocument>().shows(auto_top_up::ruled),
        get("/top-ups/{top_up}", Least::Own, "Wanted", by!(auto_top_up::wanted), "A payment that an auto top-up asked for last: look before you charge").answers::<WantedDocument>(),
        act::<TopUpFailed>("/top-ups/{top_up}/failed", Least::Sell).answers::<TopUpFailedDocument>().shows(auto_top_up::failed),
        act::<ClearAutoTopUp>("/customers/{customer}/auto-top-up", Least::Sell).deletes().answers::<CustomerDocument>().shows(auto_top_up::ruled),
        act::<Reverse>("/customers/{customer}/reversals", Least::Sell).answers::<PaymentMovedDocument>().shows(money::moved),
        act::<Adjust>("/customers/{customer}/adjust", Least::Manage).answers::<PostedDocument>(),
        act::<SetCap>("/customers/{customer}/caps", Least::Manage).called("SetCapOfCustomer", "Set a cap of all keys together, or change its limit").answers::<CapsDocument>().shows(keys::caps_left),
        get("/customers/{customer}/caps", Least::Own, "CapsOfCustomer", by!(keys::caps), "A customer's caps, and what they counted").answers::<CapsDocument>(),
        act::<ClearCap>("/customers/{customer}/caps", Least::Manage).called("ClearCapOfCustomer", "Remove a cap").deletes().answers::<CapsDocument>().shows(keys::caps_left),
        get("/customers/{customer}/entries", Least::Own, "EntriesOf", by!(reads::entries), "A customer's journal, newest first").lists::<EntryDocument>().asked::<ListPage>().asked::<reads::WhichEntries>(),
        get("/customers/{customer}/usage", Least::Own, "UsageOf", by!(reads::usage), "What each key used in each hour").lists::<UsageDocument>().asked::<reads::TimesQuery>(),
        get("/customers/{customer}/receipts", Least::Own, "Receipts", by!(papers::receipts), "Every receipt and correction of a customer, oldest first").lists::<ReceiptDocument>().asked::<papers::PaperQuery>(),
        get("/customers/{customer}/statement", Least::Own, "Statement", by!(papers::statement), "A month's statement: its equation, and what was used").answers::<StatementDocument>().asked::<papers::MonthQuery>().asked::<papers::PaperQuery>(),
        act::<GiveGrant>("/customers/{customer}/grants", Least::Manage).made().answers::<GrantDocument>().shows(grants::given),
        get("/customers/{customer}/grants", Least::Own, "GrantsOf", by!(grants::list), "A customer's grants, newest first").lists::<GrantDocument>().asked::<ListPage>().asked::<WhichGrants>(),
        act::<SellPlan>("/customers/{customer}/plans", Least::Sell).made().answers::<PlanSoldDocument>().shows(plans::sold),
        get("/customers/{customer}/plans", Least::Own, "PlansOf", by!(plans::list), "A customer's subscriptions of which something can still come, oldest first").lists::<SubscriptionDocument>().asked::<ListPage>().asked::<WhichSubscriptions>(),
        act::<Suspend>("/customers/{customer}/suspend", Least::Manage).answers::<CustomerDocument>(),
        act::<Resume>("/customers/{customer}/resume", Least::Manage).answers::<CustomerDocument>(),
    ]
}

#[rustfmt::skip]
fn of_keys() -> Vec<ApiRoute> {
    vec![
        get("/keys/{key}", Least::Own, "Key", by!(keys::show), "One key").answers::<KeyDocument>(),
        edit::<EditKey>("/keys/{key}", by!(keys::edit)).answers::<KeyDocument>(),
        act::<Reissue>("/keys/{key}/reissue", Least::Sell).answers::<KeyDocument>(),
        act::<Rotate>("/keys/{key}/rotate", Least::Manage).answers::<KeyDocument>(),
        ApiRoute { run: by!(keys::link), ..act::<MakeLink>("/keys/{key}/links", Least::Manage) }.made().answers::<LinkDocument>(),
        act::<OwnerVisit>("/visits", Least::Sell).made().answers::<VisitDocument>().shows(auto_top_up::visited),
        act::<SetCap>("/keys/{key}/caps", Least::Manage).called("SetCapOfKey", "Set a cap of one key, or change its limit").answers::<CapsDocument>().shows(keys::caps_left),
        get("/keys/{key}/caps", Least::Own, "CapsOfKey", by!(keys::caps), "A key's caps, and what they counted").answers::<CapsDocument>(),
        act::<ClearCap>("/keys/{key}/caps", Least::Manage).called("ClearCapOfKey", "Remove a cap").deletes().answers::<CapsDocument>().shows(keys::caps_left),
        act::<Block>("/keys/{key}/block", Least::Manage).answers::<KeyDocument>(),
        act::<Unblock>("/keys/{key}/unblock", Least::Manage).answers::<KeyDocument>(),
        act::<Revoke>("/keys/{key}/revoke", Least::Manage).answers::<KeyDocument>(),
    ]
}

#[rustfmt::skip]
fn of_books() -> Vec<ApiRoute> {
    vec![
        get("/entries", Least::Own, "Entries", by!(reads::entries), "The journal, newest first; a token that sells names a customer").lists::<EntryDocument>().asked::<ListPage>().asked::<reads::WhichEntries>().asked::<reads::WhoseEntries>(),
        get("/events", Least::Own, "Events", by!(reads::events), "Events, oldest first: go on after the last one that you got, and you miss none").lists::<EventDocument>().asked::<reads::EventsQuery>(),
        get("/payments", Least::All, "Payments", by!(reads::unapplied), "Payments that could not be booked, oldest first").lists::<PaymentDocument>().asked::<reads::PaymentsQuery>(),
        get("/waiting", Least::All, "WaitingThings", by!(reads::waiting), "What waits for a person, and what to do of it").lists::<WaitingThing>(),
        get("/payments/{reference}", Least::Own, "Payment", by!(reads::payment), "One payment, and what of it went back").answers::<PaymentDocument>(),
        get("/payments/{reference}/receipt", Least::Own, "Receipt", by!(papers::receipt), "A payment's receipt").answers::<ReceiptDocument>().asked::<papers::PaperQuery>(),
        act::<Assign>("/payments/{reference}/assign", Least::Manage).answers::<PaymentMovedDocument>().shows(money::moved),
        act::<Return>("/payments/{reference}/return", Least::Manage).answers::<PaymentMovedDocument>().shows(money::moved),
        get("/requests/{request}", Least::Own, "Request", by!(reads::request), "What became of a request: by our id, or its answer's").answers::<RequestDocument>(),
        act::<Refund>("/requests/{request}/refund", Least::Manage).answers::<PostedDocument>(),
        act::<Reserve>("/reservations", Least::Sell).made().answers::<ReservationDocument>(),
        act::<EndReserved>("/reservations/{reservation}", Least::Sell).deletes().answers_nothing(),
        get("/token", Least::Own, "Token", by!(reads::token), "The token that asks, and what it may still do today").answers::<TokenDocument>(),
        act::<CreateLot>("/vouchers", Least::Manage).made().answers::<LotDocument>(),
        get("/vouchers", Least::Manage, "Lots", by!(lots::list), "Lots of vouchers, oldest first, and how many of each were redeemed").lists::<LotDocument>().asked::<ListPage>().asked::<lots::LotsQuery>(),
        act::<VoidVouchers>("/vouchers/{lot}/void", Least::Manage).answers::<LotDocument>(),
        get("/grants", Least::Own, "Grants", by!(grants::list), "Grants, newest first; a token that sells names a customer").lists::<GrantDocument>().asked::<ListPage>().asked::<WhichGrants>().asked::<grants::WhoseGrants>(),
        get("/grants/{grant}", Least::Own, "Grant", by!(grants::show), "One grant, and what is left of it").named::<GrantId>().answers::<GrantDocument>(),
        act::<TakeGrantBack>("/grants/{grant}/void", Least::Manage).answers::<GrantDocument>(),
        get("/subscriptions", Least::Own, "Subscriptions", by!(plans::list), "Subscriptions of which something can still come, oldest first; a token that sells names a customer").lists::<SubscriptionDocument>().asked::<ListPage>().asked::<WhichSubscriptions>().asked::<plans::WhoseSubscriptions>(),
        get("/subscriptions/{subscription}", Least::Own, "Subscription", by!(plans::show), "One subscription: what is left of its period and windows, and what is paid").named::<SubscriptionId>().answers::<SubscriptionDocument>(),
        act::<PausePlan>("/subscriptions/{subscription}/pause", Least::Manage).answers::<SubscriptionDocument>(),
        act::<ResumePlan>("/subscriptions/{subscription}/resume", Least::Manage).answers::<SubscriptionDocument>(),
        act::<HaveOtherPlan>("/subscriptions/{subscription}/change", Least::Sell).answers::<SubscriptionDocument>().shows(plans::changed),
        act::<EndPlan>("/subscriptions/{subscription}/end", Least::Sell).answers::<SubscriptionDocument>().shows(plans::changed),
        get("/shop", Least::Own, "Shop", by!(reads::shop), "The seller, as `[shop]` of the catalog says").answers::<ShopDocument>(),
        get("/plans", Least::Own, "Plans", by!(plans::on_sale), "The plans that are sold").lists::<SoldPlanDocument>(),
        get("/models", Least::Own, "Models", by!(reads::models), "What is sold").lists::<TableRow>().asked::<reads::ModelsQuery>(),
        get("/margin", Least::All, "Margin", by!(reads::margin), "Charges, cost and possible debts").answers::<MarginsDocument>().asked::<reads::TimesQuery>().asked::<reads::MarginsQuery>(),
    ]
}

/// What ends a customer, and so the story of the examples.
#[rustfmt::skip]
fn last() -> Vec<ApiRoute> {
    vec![
        act::<MoveMoney>("/customers/{customer}/move", Least::Manage).answers::<MovedDocument>(),
        act::<Erase>("/customers/{customer}/erase", Least::Manage).answers::<CustomerDocument>(),
        act::<Close>("/customers/{customer}/close", Least::Manage).answers::<CustomerDocument>(),
    ]
}

/// The routes of a path, with the parameters as they were sent.
pub(super) fn routes_of<'path>(
    segments: &[&'path str],
) -> Vec<(&'static ApiRoute, Vec<&'path str>)> {
    let found = ROUTES.iter();
    found
        .filter_map(|route| Some((route, route.parameters(segments)?)))
        .collect()
}
