//! Multi-row statements: a table's rows, column by column, one array of values for each.

use std::fmt::{self, Write as _};

use tokio_postgres::types::ToSql;

pub(super) type SqlValue<'rows> = Box<dyn ToSql + Sync + Send + 'rows>;

/// A statement and its parameters.
pub(super) struct Write<'rows> {
    pub(super) sql: String,
    pub(super) columns: Vec<SqlValue<'rows>>,
}

impl Write<'_> {
    pub(super) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        values(&self.columns)
    }
}

/// Parameters as a statement takes them.
pub(super) fn values<'all>(all: &'all [SqlValue<'_>]) -> Vec<&'all (dyn ToSql + Sync)> {
    let all = all.iter();
    all.map(|value| &**value as &(dyn ToSql + Sync)).collect()
}

/// One statement that does what these do, so that the server answers once. None of them sees what another one writes, so no two may
/// write the same row. `None` if there are none.
pub(super) fn joined(mut writes: Vec<Write<'_>>) -> Option<Write<'_>> {
    if writes.len() < 2 {
        return writes.pop();
    }
    let (mut parts, mut columns) = (Vec::new(), Vec::new());
    for write in writes {
        parts.push((columns.len(), write.sql));
        columns.extend(write.columns);
    }
    let named = parts.iter().zip(0..).map(|((others, sql), number)| {
        fmt::from_fn(move |out| write!(out, "w{number} AS ({})", after(sql, *others)))
    });
    let sql = format!("WITH {} SELECT 1", listed(named));
    Some(Write { sql, columns })
}

/// A statement whose parameters follow `others`.
fn after(sql: &str, others: usize) -> impl fmt::Display {
    fmt::from_fn(move |out| {
        let mut parts = sql.split('$');
        out.write_str(parts.next().unwrap_or_default())?;
        for part in parts {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = part.split_at(digits);
            let number = number.parse().unwrap_or(0_usize).saturating_add(others);
            write!(out, "${number}{rest}")?;
        }
        Ok(())
    })
}

/// These, with commas between them.
pub(super) fn listed(items: impl Iterator<Item = impl fmt::Display>) -> String {
    let mut list = String::new();
    for item in items {
        let comma = if list.is_empty() { "" } else { ", " };
        // Writing to a string does not fail.
        let _ = write!(list, "{comma}{item}");
    }
    list
}

/// Rows to write to a table. Columns are added in any order; what they borrow is the batch's.
pub(super) struct TableWrite<'list, 'rows, R> {
    name: &'static str,
    rows: &'list [R],
    columns: Vec<(&'static str, &'static str, SqlValue<'rows>)>,
}

impl<'list, 'rows, R> TableWrite<'list, 'rows, R> {
    pub(super) const fn of(name: &'static str, rows: &'list [R]) -> Self {
        Self {
            name,
            rows,
            columns: Vec::new(),
        }
    }

    /// A column of numbers.
    pub(super) fn number<T>(self, name: &'static str, pick: impl Fn(&R) -> T) -> Self
    where
        Vec<T>: ToSql + Sync + Send + 'rows,
    {
        self.column(name, "bigint", pick)
    }

    /// A column of texts.
    pub(super) fn text<T>(self, name: &'static str, pick: impl Fn(&R) -> T) -> Self
    where
        Vec<T>: ToSql + Sync + Send + 'rows,
    {
        self.column(name, "text", pick)
    }

    /// A column of bytes.
    pub(super) fn bytes<T>(self, name: &'static str, pick: impl Fn(&R) -> T) -> Self
    where
        Vec<T>: ToSql + Sync + Send + 'rows,
    {
        self.column(name, "bytea", pick)
    }

    pub(super) const fn rows(&self) -> &'list [R] {
        self.rows
    }

    fn column<T>(self, name: &'static str, kind: &'static str, pick: impl Fn(&R) -> T) -> Self
    where
        Vec<T>: ToSql + Sync + Send + 'rows,
    {
        let values: Vec<T> = self.rows.iter().map(pick).collect();
        self.with(name, (kind, Box::new(values)))
    }

    /// A column of values of a type.
    pub(super) fn with(
        mut self,
        name: &'static str,
        (kind, values): (&'static str, SqlValue<'rows>),
    ) -> Self {
        self.columns.push((name, kind, values));
        self
    }

    /// The columns' names.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.columns.iter().map(|(name, ..)| *name)
    }

    fn unnest(&self) -> String {
        let arrays = self.columns.iter().zip(1..).map(|((_, kind, _), number)| {
            fmt::from_fn(move |out| write!(out, "${number}::{kind}[]"))
        });
        format!("unnest({})", listed(arrays))
    }

    /// Inserts the rows; `conflict` says what happens to those that are there.
    pub(super) fn insert(self, conflict: &str) -> Write<'rows> {
        let sql = format!(
            "INSERT INTO {} AS t ({}) SELECT * FROM {}{conflict}",
            self.name,
            listed(self.names()),
            self.unnest()
        );
        self.write(sql)
    }

    /// Updates the rows by these columns.
    pub(super) fn update(self, key: &[&str]) -> Write<'rows> {
        let set = self
            .names()
            .filter(|name| !key.contains(name))
            .map(|name| fmt::from_fn(move |out| write!(out, "{name} = u.{name}")));
        let same: Vec<_> = key
            .iter()
            .map(|name| format!("t.{name} = u.{name}"))
            .collect();
        let sql = format!(
            "UPDATE {} t SET {} FROM {} AS u ({}) WHERE {}",
            self.name,
            listed(set),
            self.unnest(),
            listed(self.names()),
            same.join(" AND ")
        );
        self.write(sql)
    }

    /// Deletes the rows whose only column is one of these values.
    pub(super) fn delete(self) -> Write<'rows> {
        let column = self.columns.first();
        let sql = format!(
            "DELETE FROM {} WHERE {} = ANY ($1::{}[])",
            self.name,
            column.map_or("", |(name, ..)| name),
            column.map_or("", |(_, kind, _)| kind),
        );
        self.write(sql)
    }

    /// Deletes the rows of the table, `t`, for which this holds with one of these, `u`.
    pub(super) fn delete_where(self, condition: &str) -> Write<'rows> {
        let sql = format!(
            "DELETE FROM {} t USING {} AS u ({}) WHERE {condition}",
            self.name,
            self.unnest(),
            listed(self.names())
        );
        self.write(sql)
    }

    fn write(self, sql: String) -> Write<'rows> {
        let columns = self.columns.into_iter().map(|(.., values)| values);
        Write {
            sql,
            columns: columns.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_written_out_of_their_columns() {
        let table = || {
            TableWrite::of("keys", &[1_i64])
                .number("id", |id| *id)
                .text("label", |_| "a".to_owned())
        };
        assert_eq!(
            table().insert("").sql,
            "INSERT INTO keys AS t (id, label) SELECT * FROM unnest($1::bigint[], $2::text[])"
        );
        assert_eq!(
            table().update(&["id"]).sql,
            "UPDATE keys t SET label = u.label FROM unnest($1::bigint[], $2::text[]) AS u (id, label) WHERE t.id = u.id"
        );
        assert_eq!(
            TableWrite::of("keys", &[1_i64])
                .number("id", |id| *id)
                .delete()
                .sql,
            "DELETE FROM keys WHERE id = ANY ($1::bigint[])"
        );
    }

    #[test]
    fn joined_statements_number_their_parameters_one_after_another() {
        let numbers = |name| TableWrite::of(name, &[1_i64]).number("id", |id| *id);
        let writes = vec![
            numbers("keys").text("label", |_| "a").update(&["id"]),
            numbers("holds").delete(),
        ];
        let write = joined(writes).unwrap();
        assert_eq!(
            write.sql,
            "WITH w0 AS (UPDATE keys t SET label = u.label FROM unnest($1::bigint[], $2::text[]) AS u (id, label) \
             WHERE t.id = u.id), w1 AS (DELETE FROM holds WHERE id = ANY ($3::bigint[])) SELECT 1"
        );
        assert_eq!(write.columns.len(), 3);
        let one = joined(vec![numbers("keys").delete()]).unwrap();
        assert_eq!(one.sql, "DELETE FROM keys WHERE id = ANY ($1::bigint[])");
        assert!(joined(Vec::new()).is_none());
    }
}
