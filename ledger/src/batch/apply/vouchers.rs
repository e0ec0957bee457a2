//! Vouchers: lots are made and voided, and a code is redeemed once.

use serde_json::{Value, json};

use super::acting::check_acts;
use super::{check_unused, grants, payments, plans};
use crate::batch::asker::BoundedAsker;
use crate::batch::needs::Needs;
use crate::batch::operation::{AskableOperation, LedgerOperation};
use crate::batch::outcome::Outcome;
use crate::batch::rows::Rows;
use crate::book::audit;
use crate::book::credit::VOUCHER;
use crate::book::house_act::{self, HouseAct, HouseSubject};
use crate::rule::voucher::Voucher;
use crate::table::needs::RowName;
use crate::value::text::{check_text, clean};
use crate::{
    Act, Credit, CreditKind, CustomerId, EventKind, Grant, GrantId, GrantKind, JournalEntry, Lot,
    LotId, NewGrant, NewLot, OperationId, Posted, Redemption, Refusal, Scope, VoidLot,
};

/// The words of the acts.
const CREATE: &str = "create_lot";
const VOID: &str = "void_lot";

fn create(rows: &mut Rows, new: &NewLot) -> Result<Lot, Refusal> {
    if let Some(lot) = rows.tables.get::<Lot>(&new.id) {
        return if lot.made_by == new.act.operation {
            Ok(lot.clone())
        } else {
            let text = format!("lot id {} is taken", new.id);
            Err(Refusal::NotApplicable(text))
        };
    }
    check_unused(rows, new.act.operation)?;
    new.check()?;
    let lot = new.lot();
    rows.tables.put(lot.clone());
    for (code, number) in new.codes.iter().zip(1..) {
        rows.tables.put(Voucher {
            code: *code,
            lot: lot.id,
            number,
            redeemed: None,
        });
    }
    write(rows, &new.act, CREATE, &lot, &house_act::created_lot(new));
    Ok(lot)
}

/// What is left of a lot is worth nothing from now on. Repeating it is fine, and no act.
fn void(rows: &mut Rows, VoidLot { lot, act }: &VoidLot) -> Result<Lot, Refusal> {
    let found = rows.tables.get::<Lot>(lot);
    let lot = found.ok_or(Refusal::NoSuchLot(*lot))?;
    if lot.is_void {
        return Ok(lot.clone());
    }
    let lot = Lot {
        is_void: true,
        ..lot.clone()
    };
    check_unused(rows, act.operation)?;
    check_text("an actor", &act.actor, 200, false)?;
    rows.tables.put(lot.clone());
    let details = json!({ "redeemed": lot.redeemed });
    write(rows, act, VOID, &lot, &details);
    Ok(lot)
}

fn write(rows: &mut Rows, act: &Act, word: &str, lot: &Lot, details: &Value) {
    rows.append_house_act(
        HouseAct {
            seq: 0,
            at: act.at,
            actor: act.actor.clone(),
            act: word.to_owned(),
            of: HouseSubject::Lot(lot.id),
            operation: act.operation,
            details: details.to_string(),
        },
        house_act::state_of_lot(lot),
    );
}

/// Credits what a voucher is worth. Whoever redeemed it gets the same answer again; everybody else one and the same refusal.
fn redeem(rows: &mut Rows, new: &Redemption) -> Result<Posted, Refusal> {
    check_acts(rows, new.key)?;
    let owner = rows.key(new.key)?.belongs_to;
    let voucher = rows.tables.get::<Voucher>(&new.code.0);
    let voucher = voucher.ok_or(Refusal::NoSuchVoucher)?.clone();
    match voucher.redeemed {
        Some((customer, operation)) if customer == owner => {
            return redeemed_before(rows, owner, operation);
        }
        Some(_) => return Err(Refusal::NoSuchVoucher),
        None => {}
    }
    let lot = rows.tables.get::<Lot>(&voucher.lot);
    let lot = lot.ok_or(Refusal::NoSuchVoucher)?.clone();
    if !lot.is_good(new.act.at) {
        return Err(Refusal::NoSuchVoucher);
    }
    if lot.once_per_customer && has_redeemed_of(rows, lot.id, owner) {
        let text = "a customer can redeem only one voucher of this kind";
        return Err(Refusal::NotApplicable(text.to_owned()));
    }
    let name = voucher.reference();
    let entry = match (&lot.plan, lot.kind) {
        (Some(terms), _) => plans::redeem(rows, (owner, &new.act), terms, &name)?,
        (None, GrantKind::Promotional) => give(rows, new, owner, &lot, name)?,
        (None, GrantKind::Paid | GrantKind::Plan) => pay_in(rows, new, owner, &lot, name)?,
    };
    let redeemed = lot.redeemed.saturating_add(1);
    rows.tables.put(Lot { redeemed, ..lot });
    let redeemed = Some((owner, new.act.operation));
    rows.tables.put(Voucher {
        redeemed,
        ..voucher
    });
    let data = json!({ "amount": entry.amount, "reference": entry.reference });
    rows.tell(owner, new.act.operation, EventKind::VoucherRedeemed, &data);
    Ok(Posted {
        entry,
        customer: rows.customer(owner)?.customer.clone(),
        key: None,
        repeated: false,
    })
}

/// Gives a grant for a voucher.
fn give(
    rows: &mut Rows,
    new: &Redemption,
    owner: CustomerId,
    lot: &Lot,
    reference: String,
) -> Result<JournalEntry, Refusal> {
    let grant = NewGrant {
        id: GrantId::derived(new.act.operation, 0),
        customer: owner,
        kind: lot.kind,
        amount: lot.amount,
        priority: Grant::PRIORITY,
        effective_at: None,
        expires_at: None,
        models: None,
        reference,
        act: new.act.clone(),
    };
    grants::book(rows, &grant)?;
    let entry = rows.entry(new.act.operation);
    entry.cloned().ok_or(Refusal::NoSuchVoucher)
}

/// Pays the pool for a voucher.
fn pay_in(
    rows: &mut Rows,
    new: &Redemption,
    owner: CustomerId,
    lot: &Lot,
    reference: String,
) -> Result<JournalEntry, Refusal> {
    let credit = Credit {
        operation: new.act.operation,
        to: Scope::Customer(owner),
        kind: CreditKind::Adjust {
            reason: VOUCHER.to_owned(),
            is_paid: true,
        },
        amount: lot.amount,
        reference,
        actor: new.act.actor.clone(),
        at: new.act.at,
    };
    payments::book(rows, &credit, audit::credit(&credit)).map(|posted| posted.entry)
}

/// Whether a customer has redeemed a voucher of this lot.
fn has_redeemed_of(rows: &Rows, lot: LotId, customer: CustomerId) -> bool {
    let mut of_lot = (rows.tables.iter::<Voucher>()).filter(|voucher| voucher.lot == lot);
    of_lot.any(|voucher| voucher.redeemed.is_some_and(|(by, _)| by == customer))
}

fn redeemed_before(
    rows: &Rows,
    owner: CustomerId,
    operation: OperationId,
) -> Result<Posted, Refusal> {
    let entry = rows.entry(operation).ok_or(Refusal::NoSuchVoucher)?;
    Ok(Posted {
        entry: entry.clone(),
        customer: rows.customer(owner)?.customer.clone(),
        key: None,
        repeated: true,
    })
}

impl LedgerOperation for NewLot {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        Some(self)
    }

    fn needs(&self) -> Needs<'_> {
        Needs::of_house(self.act.operation).with([RowName::Lot(self.id)])
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        create(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        clean(&mut self.act.actor);
    }
}

impl AskableOperation for NewLot {
    fn id(&self) -> OperationId {
        self.act.operation
    }

    fn check_asked(&self, _: &Rows, by: BoundedAsker) -> Result<(), Refusal> {
        by.refused()
    }
}

impl LedgerOperation for VoidLot {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        Some(self)
    }

    fn needs(&self) -> Needs<'_> {
        Needs::of_house(self.act.operation).with([RowName::Lot(self.lot)])
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        void(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        clean(&mut self.act.actor);
    }
}

impl AskableOperation for VoidLot {
    fn id(&self) -> OperationId {
        self.act.operation
    }

    fn check_asked(&self, _: &Rows, by: BoundedAsker) -> Result<(), Refusal> {
        by.refused()
    }
}

impl LedgerOperation for Redemption {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        Needs {
            keys: [Some(self.key), None],
            rows: vec![RowName::Voucher(self.code.0)],
            ..Needs::used([Some(self.act.operation), None])
        }
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        redeem(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        clean(&mut self.act.actor);
    }
}
