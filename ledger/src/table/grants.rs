//! Grants as rows, and those of a customer that are still open beside it: each is written as a row of its own, and read with the customer.

use super::columns::{ColumnValue, Decoded, Malformed, RowColumns, Stored, StoredAlone as _};
use super::description::{Described, DescribedRow, TableColumn, columns, table};
use crate::rule::grant::GrantName;
use crate::value::reference;
use crate::{
    Amount, CustomerId, Grant, GrantId, GrantKind, GrantRecord, GrantStatus, Grants, Plans,
    Timestamp,
};

table! { "grants" of Grant, by GrantId = "id", |grant| grant.id, in order "id";
    id: GrantId = "id";
    customer: CustomerId = "customer";
    kind: GrantKind = "kind";
    amount: Amount = "amount";
    priority: u8 = "priority";
    effective_at: Timestamp = "effective_at";
    expires_at: Option<Timestamp> = "expires_at" [changes];
    models: Option<Vec<String>> = "models";
    remaining: Amount = "remaining" [changes];
    held: Amount = "held" [changes];
    status: GrantStatus = "status" [changes];
    told: Option<u32> = "told" [changes];
}

table! { "grants" of GrantRecord, by GrantId = "id", |record| record.grant.id, in order "created_at, id";
    grant: Grant;
    reference: GrantName;
    created_at: Timestamp = "created_at";
    created_by: String = "created_by";
}

impl Stored for GrantName {
    fn read(columns: &mut impl RowColumns) -> Decoded<Self> {
        let (reference, folded): (Option<String>, Option<String>) = columns.read()?;
        if reference.as_deref().map(reference::folded) != folded {
            return Err(Malformed::Value("reference of a grant"));
        }
        Ok(Self(reference))
    }

    fn write<'row>(&'row self, values: &mut Vec<ColumnValue<'row>>) {
        let folded = self.0.as_deref().map(reference::folded);
        values.extend([
            self.0.as_ref().map_or(String::NULL, String::value),
            ColumnValue::Text(folded.map(Into::into)),
        ]);
    }
}

impl Described for GrantName {
    fn describe(columns: &mut Vec<TableColumn>) {
        columns.extend(["reference", "folded"].map(|name| TableColumn {
            name,
            changes: false,
        }));
    }
}

/// The column of accounts that says when something happens to a customer's grants; NULL if there are none.
pub(crate) const NEXT_GRANT: &str = "next_grant_at";

/// A row, as its columns.
type ListedValues = Vec<serde_json::Value>;

/// Read as stores select it, lists of lists; written as [`NEXT_GRANT`].
impl Stored for Grants {
    fn read(columns: &mut impl RowColumns) -> Decoded<Self> {
        let Some(lists) = columns.maybe_str()? else {
            return Ok(Self::default());
        };
        let (grants, subscriptions, windows): (
            Vec<ListedValues>,
            Vec<ListedValues>,
            Vec<ListedValues>,
        ) = serde_json::from_str(lists).map_err(|error| Malformed::Text {
            what: "list of grants",
            source: error.into(),
        })?;
        let plans = Plans::of(read_all(subscriptions)?, read_all(windows)?);
        Ok(Self::of(read_all(grants)?).and(plans))
    }

    fn write<'row>(&'row self, values: &mut Vec<ColumnValue<'row>>) {
        values.push(ColumnValue::Number(self.next_at().map(Timestamp::millis)));
    }
}

fn read_all<T: Stored>(rows: Vec<ListedValues>) -> Decoded<Vec<T>> {
    let read = |values: ListedValues| {
        T::read(&mut ListColumns {
            values: values.into_iter(),
            text: String::new(),
        })
    };
    rows.into_iter().map(read).collect()
}

/// The columns of one row in a list.
struct ListColumns {
    values: std::vec::IntoIter<serde_json::Value>,
    text: String,
}

impl ListColumns {
    fn next(&mut self) -> Decoded<serde_json::Value> {
        self.values.next().ok_or(Malformed::Value("grant"))
    }
}

impl RowColumns for ListColumns {
    fn maybe_number(&mut self) -> Decoded<Option<i64>> {
        match self.next()? {
            serde_json::Value::Null => Ok(None),
            value => value.as_i64().map(Some).ok_or(Malformed::Value("grant")),
        }
    }

    fn maybe_str(&mut self) -> Decoded<Option<&str>> {
        match self.next()? {
            serde_json::Value::Null => Ok(None),
            list => {
                self.text = list.to_string();
                Ok(Some(&self.text))
            }
        }
    }

    fn maybe_bytes(&mut self) -> Decoded<Option<&[u8]>> {
        Err(Malformed::Value("grant"))
    }
}
