//! What a row is, said once: `table!` names a table's columns beside the members of its row, `columns!` those of a part of one. From it
//! come what both stores select, write and read, and [`TableRows`](super::rows::TableRows).
//!
//! What is hashed is never derived from this: states and details of acts stay written out.

use std::fmt::Debug;

use super::columns::{ColumnValue, Stored};

/// A column, and whether a row that stays may change in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableColumn {
    pub(crate) name: &'static str,
    pub(crate) changes: bool,
}

/// Something with named columns: a row, or a part of one.
pub(crate) trait Described: Stored {
    /// Adds its columns, in the order in which they are read and written.
    fn describe(columns: &mut Vec<TableColumn>);

    fn columns() -> Vec<TableColumn> {
        let mut columns = Vec::new();
        Self::describe(&mut columns);
        columns
    }

    /// Its columns with their values.
    fn cells(&self) -> Vec<WrittenColumn<'_>> {
        let names = Self::columns().into_iter().map(|column| column.name);
        names.zip(self.values()).collect()
    }
}

/// A row of a table, with the key by which operations name it.
pub(crate) trait DescribedRow: Described + Debug + Clone + Send + 'static {
    type Key: Stored + Debug + Clone + Ord;

    const TABLE: &'static str;
    /// The columns of its key.
    const KEY: &'static [&'static str];
    /// The order in which all are read.
    const ORDER: &'static str;
    /// Which rows of the table these are; empty if all.
    const WHICH: &'static str;
    /// Whether one may be there that is not known: it is replaced in what changes, or else stays.
    const MAY_BE_THERE: bool;

    fn key(&self) -> Self::Key;

    /// Behind what is selected: which rows, in their order.
    fn all() -> String {
        match Self::WHICH {
            "" => format!("ORDER BY {}", Self::ORDER),
            which => format!("WHERE {which} ORDER BY {}", Self::ORDER),
        }
    }

    /// The names of the columns that are read.
    fn names() -> String {
        let names: Vec<_> = Self::columns().iter().map(|column| column.name).collect();
        names.join(", ")
    }

    /// What an insertion says of a row that is there.
    fn conflict() -> String {
        let columns = Self::columns().into_iter();
        let changing = columns.filter(|column| column.changes);
        let set: Vec<_> = changing
            .map(|column| format!("{0} = excluded.{0}", column.name))
            .collect();
        match (Self::MAY_BE_THERE, set.is_empty()) {
            (false, _) => String::new(),
            (true, true) => format!(" ON CONFLICT ({}) DO NOTHING", Self::KEY.join(", ")),
            (true, false) => format!(
                " ON CONFLICT ({}) DO UPDATE SET {}",
                Self::KEY.join(", "),
                set.join(", ")
            ),
        }
    }
}

/// A column that is written, and its value.
pub(crate) type WrittenColumn<'row> = (&'static str, ColumnValue<'row>);

/// What happens to a row in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RowChange {
    Delete,
    Insert,
    Update,
}

/// The columns that a write names, with their values: all of a new row; of one that changes those of its key, then what may change; of one
/// that goes those of its key.
pub(crate) fn written<'row, T: DescribedRow>(
    key: &'row T::Key,
    row: Option<&'row T>,
    change: RowChange,
) -> Vec<WrittenColumn<'row>> {
    let columns = T::columns();
    let mut cells: Vec<_> = T::KEY.iter().copied().zip(key.values()).collect();
    if change == RowChange::Insert {
        cells.retain(|(name, _)| columns.iter().all(|column| column.name != *name));
    }
    let of_row = columns.iter().zip(row.map(T::values).unwrap_or_default());
    let of_row = of_row.filter(|(column, _)| change == RowChange::Insert || column.changes);
    cells.extend(of_row.map(|(column, value)| (column.name, value)));
    cells
}

/// Names the columns beside the members of a struct. A member without a name has columns of its own.
macro_rules! columns {
    ($of:ident { $($member:ident: $type:ty $(= $($name:literal)+ $([$changes:ident])?)?;)+ }) => {
        impl Stored for $of {
            fn read(columns: &mut impl RowColumns) -> Decoded<Self> {
                Ok(Self { $($member: columns.read::<$type>()?),+ })
            }

            fn write<'row>(&'row self, values: &mut Vec<ColumnValue<'row>>) {
                $(Stored::write(&self.$member, values);)+
            }
        }

        impl Described for $of {
            fn describe(columns: &mut Vec<TableColumn>) {
                $(columns!(@ columns $type $(, $($name)+ $([$changes])?)?);)+
            }
        }
    };
    (@ $columns:ident $type:ty) => { <$type as Described>::describe($columns) };
    (@ $columns:ident $type:ty, $($name:literal)+) => {
        $columns.extend([$($name),+].map(|name| TableColumn { name, changes: false }))
    };
    (@ $columns:ident $type:ty, $($name:literal)+ [changes]) => {
        $columns.extend([$($name),+].map(|name| TableColumn { name, changes: true }))
    };
}
pub(crate) use columns;

/// Describes a table: its row, the key by which operations name one, and the order in which all are read.
macro_rules! table {
    ($table:literal of $of:ident, by $key:ty = $($place:literal)+, |$row:ident| $value:expr, in order $order:literal $(only $which:literal)? $(, $may:ident be there)?;
     $($columns:tt)+) => {
        columns! { $of { $($columns)+ } }

        impl DescribedRow for $of {
            type Key = $key;
            const TABLE: &'static str = $table;
            const KEY: &'static [&'static str] = &[$($place),+];
            const ORDER: &'static str = $order;
            const WHICH: &'static str = concat!($($which)?);
            const MAY_BE_THERE: bool = table!(@ $($may)?);

            fn key(&self) -> $key {
                let $row = self;
                $value
            }
        }
    };
    (@) => { false };
    (@ may) => { true };
}
pub(crate) use table;

/// Lists the tables that callers read whole.
macro_rules! whole {
    ($($of:ident),+) => {
        /// A table that is read whole.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum WholeTable {
            $(#[doc = concat!("All rows of [`", stringify!($of), "`](crate::", stringify!($of), ").")] $of,)+
        }

        /// All rows of a table, in their order.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum WholeRows {
            $(#[doc = concat!("Of [`WholeTable::", stringify!($of), "`].")] $of(Vec<$of>),)+
        }

        impl WholeTable {
            pub(crate) async fn read<R: TableReader>(self, mut reader: R) -> Result<WholeRows, R::Error> {
                Ok(match self {
                    $(Self::$of => WholeRows::$of(reader.all().await?),)+
                })
            }
        }

        $(impl WholeRow for $of {
            const TABLE: WholeTable = WholeTable::$of;

            fn of(rows: WholeRows) -> Result<Vec<Self>, LedgerError> {
                let WholeRows::$of(rows) = rows else {
                    return Err(LedgerError::unknown("the store answered with another table"));
                };
                Ok(rows)
            }
        })+
    };
}
pub(crate) use whole;

/// Lists the tables, in the order in which their rows are locked and written; and the rows that are read for a batch and written with others.
macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident: $of:ident;)+ @ read only $($(#[$read_doc:meta])* $read:ident: $row:ident;)+) => {
        /// Rows of all described tables.
        #[derive(Debug, Default)]
        pub(crate) struct TableSet {
            /// Whether there are any, and whether any was changed.
            known: bool,
            changed: bool,
            $($(#[$doc])* $name: TableRows<$of>,)+
            $($(#[$read_doc])* $read: TableRows<$row>,)+
        }

        $(tables! { @ row $of in $name })+
        $(tables! { @ row $row in $read })+

        impl TableSet {
            /// Visits every table.
            pub(crate) fn each<'set, V: TableVisitor<'set>>(&'set self, visitor: &mut V) -> Result<(), V::Error> {
                $(visitor.table(&self.$name)?;)+
                Ok(())
            }

            /// Reads every table whole, as new rows.
            pub(crate) async fn read<R: TableReader>(reader: &mut R) -> Result<Self, R::Error> {
                let mut set = Self::default();
                $(reader.all::<$of>().await?.into_iter().for_each(|row| set.put(row));)+
                Ok(set)
            }

            fn forget(&mut self) {
                $(self.$name.clear();)+
                $(self.$read.clear();)+
            }
        }
    };
    (@ row $of:ident in $name:ident) => {
        impl ListedRow for $of {
            fn of(set: &TableSet) -> &TableRows<Self> {
                &set.$name
            }

            fn of_mut(set: &mut TableSet) -> &mut TableRows<Self> {
                &mut set.$name
            }
        }
    };
}
pub(crate) use tables;
