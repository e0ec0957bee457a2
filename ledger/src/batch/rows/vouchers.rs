//! Vouchers and their lots among the rows of a batch.

use super::{CachedRow, Rows, clear};
use crate::rule::voucher::Voucher;
use crate::{CustomerId, Lot, LotId, OperationId, SecretHash};

impl Rows {
    /// A lot, and the operation that made it.
    pub(crate) fn lot(&self, id: LotId) -> Option<(&Lot, OperationId)> {
        let (lot, made_by) = self.lots.get(&id)?.now.as_ref()?;
        Some((lot, *made_by))
    }

    /// The voucher with this code.
    pub(crate) fn voucher(&self, code: SecretHash) -> Option<&Voucher> {
        self.vouchers.get(&code.0)?.now.as_ref()
    }

    /// Whether a customer has redeemed a voucher of this lot, one of those from which a customer can redeem only one.
    pub(crate) fn has_redeemed_of(&self, lot: LotId, customer: CustomerId) -> bool {
        self.redeemers.contains(&(lot, customer))
    }

    /// Stores a new lot with its vouchers.
    pub(crate) fn insert_lot(&mut self, lot: Lot, made_by: OperationId, codes: &[SecretHash]) {
        for (code, number) in codes.iter().zip(1..) {
            self.put_voucher(Voucher {
                code: *code,
                lot: lot.id,
                number,
                redeemed: None,
            });
        }
        self.put_lot(lot, made_by);
    }

    /// Stores a lot as it is.
    pub(crate) fn put_lot(&mut self, lot: Lot, made_by: OperationId) {
        let id = lot.id;
        let was_stored = self.lots.get(&id).is_some_and(|row| row.was_stored);
        let row = CachedRow {
            was_stored,
            ..CachedRow::new((lot, made_by))
        };
        self.changes.lots.insert(id);
        self.lots.insert(id, row);
    }

    /// Stores what has changed of a lot.
    pub(crate) fn update_lot(&mut self, lot: Lot) {
        if let Some((_, made_by)) = self.lot(lot.id) {
            self.put_lot(lot, made_by);
        }
    }

    /// Stores a voucher as it is.
    pub(crate) fn put_voucher(&mut self, voucher: Voucher) {
        let code = voucher.code.0;
        let was_stored = self.vouchers.get(&code).is_some_and(|row| row.was_stored);
        let row = CachedRow {
            was_stored,
            ..CachedRow::new(voucher)
        };
        self.changes.vouchers.insert(code);
        self.vouchers.insert(code, row);
    }

    /// Notes who redeemed a voucher, by which operation.
    pub(crate) fn take_voucher(
        &mut self,
        code: SecretHash,
        customer: CustomerId,
        operation: OperationId,
    ) {
        let Some(voucher) = self.voucher(code).cloned() else {
            return;
        };
        if let Some((lot, _)) = self.lot(voucher.lot) {
            let redeemed = lot.redeemed.saturating_add(1);
            let lot = Lot {
                redeemed,
                ..lot.clone()
            };
            self.update_lot(lot);
        }
        self.redeemers.insert((voucher.lot, customer));
        self.put_voucher(Voucher {
            redeemed: Some((customer, operation)),
            ..voucher
        });
    }

    /// Lots that were changed, with the operations that made them, and whether the database has them.
    pub(crate) fn changed_lots(&self) -> impl Iterator<Item = (&Lot, OperationId, bool)> {
        let changed = self.changes.lots.iter();
        changed.filter_map(|id| {
            let row = self.lots.get(id)?;
            let (lot, made_by) = row.now.as_ref()?;
            Some((lot, *made_by, row.was_stored))
        })
    }

    /// Vouchers that were changed, and whether the database has them.
    pub(crate) fn changed_vouchers(&self) -> impl Iterator<Item = (&Voucher, bool)> {
        let changed = self.changes.vouchers.iter();
        changed.filter_map(|code| {
            let row = self.vouchers.get(code)?;
            Some((row.now.as_ref()?, row.was_stored))
        })
    }

    /// Notes that all of this has been written.
    pub(super) fn forget_vouchers(&mut self) {
        clear(&mut self.lots);
        clear(&mut self.vouchers);
        self.redeemers.clear();
    }
}
