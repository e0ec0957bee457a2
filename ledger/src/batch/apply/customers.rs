//! Customers: create and change. Each leaves one audit record in the same transaction.

use super::acting::refused;
use super::{check_unused, delegation, grants, news, wishes, write_act};
use crate::batch::asker::BoundedAsker;
use crate::batch::needs::Needs;
use crate::batch::operation::{AskableOperation, LedgerOperation};
use crate::batch::outcome::Outcome;
use crate::batch::rows::Rows;
use crate::book::audit;
use crate::book::head::{AuditHead, EntryHead, StoredCustomer};
use crate::rule::cap::PastSpending;
use crate::rule::token_day::TokenDeed;
use crate::rule::watch::CustomerWatch;
use crate::table::needs::RowName;
use crate::table::owners::ExternalIdRow;
use crate::value::text::clean;
use crate::{
    Customer, CustomerAct, CustomerChange, CustomerId, KeyId, NewCustomer, OperationId,
    PersonalData, Refusal, Scope,
};

fn create(rows: &mut Rows, new: &NewCustomer) -> Result<Customer, Refusal> {
    let act = audit::create_customer(new);
    if let Some(known) = rows.act(act.operation).filter(|known| known.act == act.act) {
        return Ok(rows.customer(known.customer)?.customer.clone());
    }
    check_new(rows, new)?;
    make(rows, new)
}

/// Refuses a customer that cannot be made.
pub(super) fn check_new(rows: &Rows, new: &NewCustomer) -> Result<(), Refusal> {
    check_unused(rows, new.act.operation)?;
    new.settings.check()?;
    PersonalData::check_new(new.personal.as_ref())?;
    check_external(rows, new.id, new.settings.external_id.as_ref())?;
    check_free(rows, new.id)
}

/// Makes a customer that was checked. It is refused before anything is written if the token that asks may make no more.
pub(super) fn make(rows: &mut Rows, new: &NewCustomer) -> Result<Customer, Refusal> {
    let counted = delegation::counted(rows, TokenDeed::Customer)?;
    insert(rows, new.customer())?;
    delegation::count(rows, counted);
    news::customer_created(rows, new.id, &new.act);
    if let Some(data) = &new.personal {
        rows.set_personal(new.id, Some(data.clone()));
    }
    write_act(rows, audit::create_customer(new), new.id)?;
    Ok(rows.customer(new.id)?.customer.clone())
}

fn check_free(rows: &Rows, id: CustomerId) -> Result<(), Refusal> {
    if rows.customer(id).is_ok() {
        let text = format!("customer id {id} is taken");
        return Err(Refusal::NotApplicable(text));
    }
    Ok(())
}

/// Stores a new customer, whose id must be free.
pub(super) fn insert(rows: &mut Rows, mut customer: Customer) -> Result<(), Refusal> {
    check_free(rows, customer.id)?;
    customer.token = rows.asked_by.token();
    rows.insert_customer(StoredCustomer {
        customer,
        head: EntryHead::NONE,
        audit: AuditHead::NONE,
        watch: CustomerWatch::default(),
        opened: 0,
    });
    Ok(())
}

fn change(rows: &mut Rows, change: &CustomerChange) -> Result<Customer, Refusal> {
    let operation = change.act.operation;
    let known = rows.act(operation);
    if known.is_some_and(|record| audit::repeats_customer_change(change, record)) {
        return Ok(rows.customer(change.customer)?.customer.clone());
    }
    check_unused(rows, operation)?;
    if change.change == CustomerAct::Close {
        grants::settle(rows, change.customer)?;
    }
    let mut customer = rows.customer(change.customer)?.customer.clone();
    check_external(rows, change.customer, change.change.new_external_id())?;
    let change = &whole(rows, change);
    let of = Scope::Customer(customer.id);
    let (hours, holds) = (rows.spent_hours(of), rows.holds_of(of));
    let spending = PastSpending {
        hours: &hours,
        holds: &holds,
    };
    let before = customer.status;
    customer.apply(
        &change.change,
        (rows.asked_by.caps_as(), rows.asked_by.token()),
        rows.now(),
        spending,
    )?;
    let act = audit::change_customer(change, &customer.settings);
    rows.update_customer(customer);
    news::customer_changed(rows, change.customer, before, &change.change, &change.act);
    match &change.change {
        CustomerAct::Describe(data) => rows.set_personal(change.customer, Some(data.clone())),
        CustomerAct::Erase => rows.set_personal(change.customer, None),
        _ => {}
    }
    write_act(rows, act, change.customer)?;
    // A rule that is new, or served again, may want something at once.
    wishes::judge(rows, change.customer, operation);
    Ok(rows.customer(change.customer)?.customer.clone())
}

/// A change with all that is known of the person, if it says something of it.
fn whole(rows: &Rows, change: &CustomerChange) -> CustomerChange {
    let mut whole = change.clone();
    if let CustomerAct::Describe(data) = &mut whole.change {
        let known = rows.personal.get(&change.customer).cloned();
        *data = data.clone().over(known);
    }
    whole
}

/// Refuses an external id that another customer has.
fn check_external(
    rows: &Rows,
    customer: CustomerId,
    external_id: Option<&String>,
) -> Result<(), Refusal> {
    let Some(external_id) = external_id else {
        return Ok(());
    };
    match rows.tables.get::<ExternalIdRow>(external_id) {
        Some(known) if known.customer != customer => Err(Refusal::ExternalIdUsed {
            external_id: external_id.clone(),
            customer: known.customer,
        }),
        Some(_) | None => Ok(()),
    }
}

impl LedgerOperation for NewCustomer {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        Some(self)
    }

    fn needs(&self) -> Needs<'_> {
        let external = self.settings.external_id.clone();
        Needs::administrative(self.id.into(), [Some(self.act.operation), None])
            .with(external.map(RowName::ExternalId))
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        create(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        self.settings.clean();
        clean(&mut self.act.actor);
    }
}

impl AskableOperation for NewCustomer {
    fn id(&self) -> OperationId {
        self.act.operation
    }

    fn check_asked(&self, _: &Rows, by: BoundedAsker) -> Result<(), Refusal> {
        by.check_sells()?;
        self.settings.check_sold()
    }
}

impl LedgerOperation for CustomerChange {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        Some(self)
    }

    fn needs(&self) -> Needs<'_> {
        let of = Scope::Customer(self.customer);
        let is_cap = matches!(
            self.change,
            CustomerAct::SetCap(_) | CustomerAct::ClearCap { .. }
        );
        let is_described = matches!(self.change, CustomerAct::Describe(_));
        let external = self.change.new_external_id().cloned();
        let needs = Needs {
            spending: is_cap.then_some(of),
            personal: is_described.then_some(self.customer),
            ..Needs::administrative(of, [Some(self.act.operation), None])
        };
        needs.with(external.map(RowName::ExternalId))
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        change(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        if let CustomerAct::Edit(edit) = &mut self.change {
            edit.clean();
        }
        clean(&mut self.act.actor);
    }
}

impl AskableOperation for CustomerChange {
    fn id(&self) -> OperationId {
        self.act.operation
    }

    fn check_asked(&self, rows: &Rows, by: BoundedAsker) -> Result<(), Refusal> {
        match by {
            // Who charges a card says that it failed.
            BoundedAsker::Seller(token) => match &self.change {
                CustomerAct::FailTopUp { .. } => Ok(()),
                CustomerAct::SetAutoTopUp(..) | CustomerAct::ClearAutoTopUp => {
                    wishes::check_agreed(rows, self.customer, token)
                }
                CustomerAct::Edit(_)
                | CustomerAct::Suspend
                | CustomerAct::Resume
                | CustomerAct::Close
                | CustomerAct::Describe(_)
                | CustomerAct::Erase
                | CustomerAct::SetCap(_)
                | CustomerAct::ClearCap { .. } => by.refused(),
            },
            BoundedAsker::Owner(owner) => check_own(rows, owner, self),
        }
    }
}

fn check_own(rows: &Rows, owner: KeyId, change: &CustomerChange) -> Result<(), Refusal> {
    let own = rows.key(owner)?.belongs_to;
    if change.customer != own {
        return Err(Refusal::NoSuchCustomer(change.customer));
    }
    match &change.change {
        CustomerAct::SetCap(_) | CustomerAct::ClearCap { .. } | CustomerAct::ClearAutoTopUp => {
            Ok(())
        }
        CustomerAct::Edit(edit) if edit.is_of_low_balance() => Ok(()),
        CustomerAct::Edit(_)
        | CustomerAct::Suspend
        | CustomerAct::Resume
        | CustomerAct::Close
        | CustomerAct::Describe(_)
        | CustomerAct::Erase
        | CustomerAct::SetAutoTopUp(..)
        | CustomerAct::FailTopUp { .. } => refused(
            "an owner key sets caps and the low balance of its customer and ends its auto top-up, and nothing else",
        ),
    }
}
