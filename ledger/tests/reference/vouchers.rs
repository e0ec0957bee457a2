//! Vouchers in the reference store.

use serde_json::json;

use super::State;
use super::operations::{Done, not_applicable};
use crate::book::house_act::{self, HouseSubject};
use crate::{
    Act, Credit, CreditKind, CustomerId, EventKind, GrantId, GrantKind, JournalEntry, Lot, LotId,
    NewGrant, NewLot, OperationId, Posted, Redemption, Refusal, Scope, clock,
};

/// A voucher: its lot, its number, and who redeemed it by which operation.
pub(super) type Voucher = (LotId, usize, Option<(CustomerId, OperationId)>);

impl State {
    pub(super) fn lots_by_age(&self) -> Vec<Lot> {
        let mut found: Vec<Lot> = self.lots.values().map(|(lot, _)| lot.clone()).collect();
        found.sort_by_key(|lot| (lot.created_at, lot.id));
        found
    }

    pub(super) fn create_lot(&mut self, new: &NewLot) -> Done<Lot> {
        if let Some((lot, made_by)) = self.lots.get(&new.id) {
            return if *made_by == new.act.operation {
                Ok(lot.clone())
            } else {
                Err(not_applicable(&format!("lot id {} is taken", new.id)))
            };
        }
        self.check_unused(new.act.operation)?;
        new.check()?;
        for (code, number) in new.codes.iter().zip(1..) {
            self.vouchers.insert(code.0, (new.id, number, None));
        }
        let lot = new.lot();
        self.lots.insert(new.id, (lot.clone(), new.act.operation));
        let details = house_act::created_lot(new).to_string();
        self.write_house_act(HouseSubject::Lot(new.id), "create_lot", &new.act, details);
        Ok(lot)
    }

    pub(super) fn void_lot(&mut self, id: LotId, act: &Act) -> Done<Lot> {
        let (lot, _) = self.lots.get(&id).ok_or(Refusal::NoSuchLot(id))?;
        if lot.is_void {
            return Ok(lot.clone());
        }
        self.check_unused(act.operation)?;
        let (lot, _) = self.lots.get_mut(&id).ok_or(Refusal::NoSuchLot(id))?;
        lot.is_void = true;
        let lot = lot.clone();
        let details = format!("{{\"redeemed\":{}}}", lot.redeemed);
        self.write_house_act(HouseSubject::Lot(id), "void_lot", act, details);
        Ok(lot)
    }

    pub(super) fn redeem(&mut self, new: &Redemption) -> Done<Posted> {
        let customer = self.active(new.key, clock::now())?.id;
        let voucher = self.vouchers.get(&new.code.0);
        let (of, number, redeemed) = *voucher.ok_or(Refusal::NoSuchVoucher)?;
        if let Some((by, operation)) = redeemed {
            let entry = self.entry(operation).filter(|_| by == customer);
            return Ok(Posted {
                entry: entry.ok_or(Refusal::NoSuchVoucher)?.clone(),
                customer: self.customer(customer)?.clone(),
                key: None,
                repeated: true,
            });
        }
        let lot = self.lots.get(&of).map(|(lot, _)| lot.clone());
        let lot = lot.ok_or(Refusal::NoSuchVoucher)?;
        if lot.is_void || lot.expires_at.is_some_and(|end| end <= new.act.at) {
            return Err(Refusal::NoSuchVoucher);
        }
        let mut of_lot = self.vouchers.values().filter(|voucher| voucher.0 == of);
        let has_one = of_lot.any(|voucher| voucher.2.is_some_and(|(by, _)| by == customer));
        if lot.once_per_customer && has_one {
            let text = "a customer can redeem only one voucher of this kind";
            return Err(not_applicable(text));
        }
        if let Some(terms) = &lot.plan {
            let name = format!("voucher:{of}-{number}");
            let entry = self.redeem_plan((customer, &new.act), terms, &name)?;
            self.use_up(new, (of, number), &entry);
            return Ok(Posted {
                entry,
                customer: self.customer(customer)?.clone(),
                key: None,
                repeated: false,
            });
        }
        if lot.kind == GrantKind::Promotional {
            let entry = self.redeem_as_grant(new, customer, (&lot, number))?;
            self.use_up(new, (of, number), &entry);
            return Ok(Posted {
                entry,
                customer: self.customer(customer)?.clone(),
                key: None,
                repeated: false,
            });
        }
        let posted = self.credit(&Credit {
            operation: new.act.operation,
            to: Scope::Customer(customer),
            kind: CreditKind::Adjust {
                reason: "voucher".to_owned(),
                is_paid: true,
            },
            amount: lot.amount,
            reference: format!("voucher:{of}-{number}"),
            actor: new.act.actor.clone(),
            at: new.act.at,
        })?;
        self.use_up(new, (of, number), &posted.entry);
        Ok(posted)
    }

    fn redeem_as_grant(
        &mut self,
        new: &Redemption,
        customer: CustomerId,
        (lot, number): (&Lot, usize),
    ) -> Done<JournalEntry> {
        self.book_grant(&NewGrant {
            id: GrantId::derived(new.act.operation, 0),
            customer,
            kind: GrantKind::Promotional,
            amount: lot.amount,
            priority: 50,
            effective_at: None,
            expires_at: None,
            models: None,
            reference: format!("voucher:{}-{number}", lot.id),
            act: new.act.clone(),
        })?;
        let entry = self.entry(new.act.operation).cloned();
        entry.ok_or(Refusal::NoSuchVoucher)
    }

    fn use_up(&mut self, new: &Redemption, (of, number): (LotId, usize), entry: &JournalEntry) {
        let by = entry.customer;
        let redeemed = Some((by, new.act.operation));
        self.vouchers.insert(new.code.0, (of, number, redeemed));
        if let Some((lot, _)) = self.lots.get_mut(&of) {
            lot.redeemed = lot.redeemed.saturating_add(1);
        }
        let data = json!({ "amount": entry.amount, "reference": entry.reference });
        self.tell(by, new.act.operation, EventKind::VoucherRedeemed, &data);
    }
}
