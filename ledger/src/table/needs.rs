//! Rows that operations name, and what a store reads with each: the tables and, in words that both databases know, which of their rows.
//!
//! `{keys}` stands for the comparison with what was named, `{before}` for the last day that the bounds of today are not reckoned from.
//! The order is that in which rows are locked.

use super::columns::{ColumnValue, StoredAlone as _};
use super::list::{ListedRow, TableSet};
use super::owners::ExternalIdRow;
use crate::book::house_act::ChainedHouseAct;
use crate::rule::answer::{AnswerId, KeptAnswer};
use crate::rule::defaults::DefaultsRow;
use crate::rule::link::SignInLink;
use crate::rule::voucher::Voucher;
use crate::{
    GrantId, GrantRecord, KeyId, Lot, LotId, OperationId, Reservation, Session, Subscription,
    SubscriptionId, Token, TokenDay, TokenId,
};

/// Lists what operations name and what is read with it.
macro_rules! named {
    ($($(#[$doc:meta])* $name:ident($key:ty) { $($of:ident $condition:literal $([$locked:ident])?;)+ })+) => {
        /// A row that an operation names.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum RowName {
            $($(#[$doc])* $name($key),)+
        }

        impl RowName {
            /// What it is compared with.
            pub(crate) fn key(&self) -> ColumnValue<'_> {
                match self {
                    $(Self::$name(key) => key.value(),)+
                }
            }

            /// Reads what belongs to it.
            pub(crate) fn read<R: NamedReader>(&self, reader: &mut R) -> Result<(), R::Error> {
                match self {
                    $(Self::$name(_) => {
                        $(reader.read::<$of>($condition, named!(@ $($locked)?))?;)+
                        Ok(())
                    })+
                }
            }
        }
    };
    (@) => { false };
    (@ locked) => { true };
}

named! {
    /// A token of the admin API, with the days from which its bounds of today are reckoned, and what it has reserved.
    Token(TokenId) {
        Token "id {keys}" [locked];
        TokenDay "token {keys} AND day > {before}";
        Reservation "token {keys}";
    }
    Lot(LotId) {
        Lot "id {keys}" [locked];
    }
    /// A voucher by the hash of its code, with its lot and, if of that a customer can redeem only one, those that were redeemed.
    Voucher([u8; 32]) {
        Lot "id IN (SELECT lot FROM vouchers WHERE code {keys})" [locked];
        Voucher "code {keys}" [locked];
        Voucher "customer IS NOT NULL AND lot IN (SELECT v.lot FROM vouchers v JOIN lots l ON l.id = v.lot WHERE l.once = 1 AND v.code {keys})";
    }
    Grant(GrantId) {
        GrantRecord "id {keys}";
    }
    Subscription(SubscriptionId) {
        Subscription "id {keys}";
    }
    /// The grants that paid a charge.
    GrantsOfCharge(OperationId) {
        GrantRecord "customer IN (SELECT e.customer FROM entries e WHERE e.operation {keys}) AND EXISTS (SELECT 1 FROM entries e WHERE e.operation {keys} AND e.customer = grants.customer AND e.parts LIKE '%[' || grants.id || ',%')";
    }
    /// A token by its label.
    TokenLabel(String) {
        Token "label {keys}";
    }
    /// An act that belongs to no customer, the token that it is on, and the end of their chain.
    HouseAct(OperationId) {
        ChainedHouseAct "operation {keys}";
        Token "id IN (SELECT token FROM house_acts WHERE operation {keys})";
        ChainedHouseAct "seq = (SELECT max(seq) FROM house_acts)";
    }
    /// The defaults of the house.
    Defaults(i64) {
        DefaultsRow "id {keys}" [locked];
    }
    Answer(AnswerId) {
        KeptAnswer "id {keys}";
    }
    /// Who has an external id.
    ExternalId(String) {
        ExternalIdRow "external_id {keys}";
    }
    /// A session or link, by the hash of its token.
    Access([u8; 32]) {
        Session "token {keys}";
        SignInLink "token {keys}";
    }
}

/// What a row that was read leads to.
pub(crate) enum NextRow {
    Entry(OperationId),
    Key(KeyId),
}

impl RowName {
    /// What is read after it, if it is there.
    pub(crate) fn leads_to(&self, found: &TableSet) -> Option<NextRow> {
        match self {
            Self::Voucher(code) => {
                let (_, operation) = found.get::<Voucher>(code)?.redeemed?;
                Some(NextRow::Entry(operation))
            }
            Self::Access(token) => Some(NextRow::Key(found.get::<SignInLink>(token)?.key)),
            Self::Token(_)
            | Self::Lot(_)
            | Self::TokenLabel(_)
            | Self::Grant(_)
            | Self::Subscription(_)
            | Self::GrantsOfCharge(_)
            | Self::HouseAct(_)
            | Self::Defaults(_)
            | Self::Answer(_)
            | Self::ExternalId(_) => None,
        }
    }
}

/// Reads rows of a table.
pub(crate) trait NamedReader {
    type Error;

    fn read<T: ListedRow>(&mut self, condition: &str, is_locked: bool) -> Result<(), Self::Error>;
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// The tables and conditions of what is locked.
    struct Locks(Vec<(&'static str, String)>);

    impl NamedReader for Locks {
        type Error = Infallible;

        fn read<T: ListedRow>(
            &mut self,
            condition: &str,
            is_locked: bool,
        ) -> Result<(), Infallible> {
            if is_locked {
                self.0.push((T::TABLE, condition.to_owned()));
            }
            Ok(())
        }
    }

    #[test]
    fn rows_are_locked_in_one_order() {
        let mut names = [
            RowName::Access([1; 32]),
            RowName::Voucher([1; 32]),
            RowName::Answer(AnswerId([1; 32])),
            RowName::HouseAct(OperationId::from_bytes([1; 16])),
            RowName::Lot(LotId::from_random(1)),
            RowName::TokenLabel("shop".to_owned()),
            RowName::ExternalId("crm-1".to_owned()),
            RowName::Token(TokenId::from_random(1)),
        ];
        names.sort();
        let mut locks = Locks(Vec::new());
        for name in &names {
            let Ok(()) = name.read(&mut locks);
        }
        let locks: Vec<_> = (locks.0.iter())
            .map(|(table, which)| (*table, &**which))
            .collect();
        assert_eq!(
            locks,
            [
                ("tokens", "id {keys}"),
                ("lots", "id {keys}"),
                ("lots", "id IN (SELECT lot FROM vouchers WHERE code {keys})"),
                ("vouchers", "code {keys}"),
            ]
        );
    }
}
