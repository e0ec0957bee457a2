//! Subscriptions and the windows of their plans as rows: each is written as a row of its own, and read with the customer.

use std::borrow::Cow;

use super::columns::{ColumnValue, Decoded, Malformed, RowColumns, Stored};
use super::description::{Described, DescribedRow, TableColumn, columns, table};
use crate::{
    Amount, CustomerId, PlanWindow, Subscription, SubscriptionId, SubscriptionState, Timestamp,
    WindowId, WindowPlace,
};

table! { "subscriptions" of Subscription, by SubscriptionId = "id", |of| of.id, in order "id", may be there;
    id: SubscriptionId = "id";
    customer: CustomerId = "customer";
    state: SubscriptionState;
    moved: Amount = "moved" [changes];
    told: u8 = "told" [changes];
}

table! { "plan_windows" of PlanWindow, by WindowId = "id", |window| window.id, in order "id", may be there;
    id: WindowId = "id";
    customer: CustomerId = "customer";
    place: WindowPlace = "place";
    begins: Timestamp = "begins";
    ends: Timestamp = "ends";
    bound: Amount = "bound";
    charged: Amount = "charged" [changes];
    held: Amount = "held" [changes];
    told: u8 = "told" [changes];
}

/// Whether anything can still come of it, and all of it.
impl Stored for SubscriptionState {
    fn read(columns: &mut impl RowColumns) -> Decoded<Self> {
        let open: bool = columns.read()?;
        let state: Option<Self> = columns.maybe_json("state of a subscription")?;
        let state = state.filter(|state| state.is_open() == open);
        state.ok_or(Malformed::Value("state of a subscription"))
    }

    fn write<'row>(&'row self, values: &mut Vec<ColumnValue<'row>>) {
        let text = serde_json::to_string(self).unwrap_or_default();
        values.extend([
            ColumnValue::Number(Some(i64::from(self.is_open()))),
            ColumnValue::Text(Some(Cow::Owned(text))),
        ]);
    }
}

impl Described for SubscriptionState {
    fn describe(columns: &mut Vec<TableColumn>) {
        columns.extend(["open", "state"].map(|name| TableColumn {
            name,
            changes: true,
        }));
    }
}
