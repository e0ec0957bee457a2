//! Keys and customers as rows. What requests write of them (accounts, the ends of chains, counts of caps) is written by hand, and nothing
//! else: whatever is set stands here, beside its struct.

use std::sync::Arc;

use super::columns::{ColumnValue, Decoded, RowColumns, Stored, StoredAlone as _};
use super::description::{Described, DescribedRow, TableColumn, WrittenColumn, columns, table};
use crate::book::head::{AuditHead, EntryHead, Hash, StoredCustomer};
use crate::rule::auto_top_up::AutoTopUp;
use crate::rule::key::KeyRecord;
use crate::rule::watch::{BalanceTold, CustomerWatch};
use crate::{
    Account, Amount, ByDefault, Caps, Customer, CustomerBy, CustomerId, CustomerSettings,
    CustomerStatus, Grants, Key, KeyId, KeySettings, KeyStatus, MetadataPairs, PersonalHash,
    SecretHash, Timestamp, TokenId,
};

table! { "keys" of KeyRecord, by KeyId = "id", |key| key.id, in order "id";
    id: KeyId = "id";
    belongs_to: CustomerId = "customer";
    is_owner: bool = "owner";
    made_by: Option<KeyId> = "made_by";
    counts_in: Option<KeyId> = "counts_in";
    token: Option<TokenId> = "token";
    settings: KeySettings;
    stored_status: KeyStatus = "status" [changes];
    secret: SecretHash = "secret" [changes];
    old_secret: Option<(SecretHash, Timestamp)> = "old_secret" "old_until" [changes];
    caps: Caps = "caps";
    defaults: ByDefault;
    used_at: Option<Timestamp> = "used_at" [changes];
    created_at: Timestamp = "created_at";
    created_by: Arc<str> = "created_by";
}

/// It stands with the house, and is filled in when a key or customer is read.
impl Stored for ByDefault {
    fn read(_: &mut impl RowColumns) -> Decoded<Self> {
        Ok(Self::default())
    }

    fn write<'row>(&'row self, _: &mut Vec<ColumnValue<'row>>) {}
}

impl Described for ByDefault {
    fn describe(_: &mut Vec<TableColumn>) {}
}

columns! { KeySettings {
    label: String = "label" [changes];
    models: Option<Vec<String>> = "models" [changes];
    expires_at: Option<Timestamp> = "expires_at" [changes];
    rate: Option<u32> = "rate" [changes];
    concurrency: Option<u32> = "concurrency" [changes];
    metadata: Option<Box<MetadataPairs>> = "metadata";
} }

table! { "accounts" of StoredCustomer, by CustomerId = "id", |stored| stored.customer.id, in order "id";
    customer: Customer;
    audit: AuditHead;
    head: EntryHead;
    watch: CustomerWatch;
    opened: i64 = "opened";
}

columns! { Customer {
    id: CustomerId = "id";
    settings: CustomerSettings;
    status: CustomerStatus = "status" [changes];
    account: Account;
    claim: Amount = "claim";
    caps: Caps = "caps";
    defaults: ByDefault;
    auto_top_up: Option<Box<AutoTopUp>> = "auto_top_up";
    grants: Grants = "next_grant_at";
    personal: Option<PersonalHash> = "personal" [changes];
    created_at: Timestamp = "created_at";
    created_by: Arc<str> = "created_by";
    token: Option<TokenId> = "token";
    last_entry_at: Option<Timestamp> = "last_at";
} }

columns! { CustomerSettings {
    label: String = "label" [changes];
    external_id: Option<String> = "external_id" [changes];
    price_list: Option<String> = "price_list" [changes];
    low_balance: Option<Amount> = "low_balance" [changes];
    rate: Option<u32> = "rate" [changes];
    concurrency: Option<u32> = "concurrency" [changes];
} }

/// A customer with a price list that is not closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedCustomer {
    /// The customer.
    pub customer: CustomerId,
    /// [`CustomerSettings::price_list`].
    pub price_list: String,
}

// Their index has the same words.
table! { "accounts" of ListedCustomer, by CustomerId = "id", |row| row.customer, in order "id" only "price_list IS NOT NULL AND status <> 3";
    customer: CustomerId = "id";
    price_list: String = "price_list";
}

/// The texts of a customer in which a search looks.
pub(crate) const SEARCHED: [&str; 2] = ["label", "external_id"];

impl CustomerBy<'_> {
    /// The column that has it, and its value.
    pub(crate) fn column(&self) -> WrittenColumn<'_> {
        match self {
            Self::Id(id) => ("id", id.value()),
            Self::ExternalId(id) => ("external_id", ColumnValue::Text(Some((*id).into()))),
        }
    }
}

/// Who has an external id: read so that no other customer gets it. It is written with its customer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExternalIdRow {
    external_id: String,
    pub(crate) customer: CustomerId,
}

impl ExternalIdRow {
    pub(crate) fn of(customer: &Customer) -> Option<Self> {
        let external_id = customer.settings.external_id.clone()?;
        let customer = customer.id;
        Some(Self {
            external_id,
            customer,
        })
    }
}

table! { "accounts" of ExternalIdRow, by String = "external_id", |row| row.external_id.clone(), in order "id";
    external_id: String = "external_id";
    customer: CustomerId = "id";
}

columns! { Account {
    credit: Amount = "credit";
    spent: Amount = "spent";
    held: Amount = "held";
} }

columns! { AuditHead {
    seq: i64 = "audit_seq";
    last: i64 = "audit_last";
    hash: Hash = "audit_hash";
} }

columns! { EntryHead {
    seq: i64 = "seq";
    last: i64 = "last";
    hash: Hash = "hash";
} }

columns! { CustomerWatch {
    seq: i64 = "event_seq";
    last_top_up: Amount = "last_top_up";
    told: BalanceTold = "told";
} }

/// A key is read with its customer, and the caps that it counts in, from one instant.
impl Key {
    pub(crate) fn read(columns: &mut impl RowColumns) -> Decoded<Self> {
        Ok(Self {
            own: columns.read()?,
            customer: columns.read()?,
            of_maker: columns.read()?,
        })
    }
}
