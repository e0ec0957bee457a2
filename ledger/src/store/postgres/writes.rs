//! Multi-row statements: a table's rows, column by column, one array of values for each.

use tokio_postgres::types::ToSql;

pub(super) type SqlValue = Box<dyn ToSql + Sync + Send>;

/// A statement and its parameters.
pub(super) struct Write {
    pub(super) sql: String,
    pub(super) columns: Vec<SqlValue>,
}

impl Write {
    pub(super) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.columns
            .iter()
            .map(|column| &**column as &(dyn ToSql + Sync))
            .collect()
    }
}

/// Rows to write to a table. Columns are added in any order.
pub(super) struct TableWrite<'rows, R> {
    name: &'static str,
    rows: &'rows [R],
    columns: Vec<(&'static str, &'static str, SqlValue)>,
}

impl<'rows, R> TableWrite<'rows, R> {
    pub(super) const fn of(name: &'static str, rows: &'rows [R]) -> Self {
        Self {
            name,
            rows,
            columns: Vec::new(),
        }
    }

    /// A column of numbers.
    pub(super) fn number<T>(self, name: &'static str, pick: impl Fn(&R) -> T) -> Self
    where
        Vec<T>: ToSql + Sync + Send + 'static,
    {
        self.column(name, "bigint", pick)
    }

    /// A column of texts.
    pub(super) fn text<T>(self, name: &'static str, pick: impl Fn(&R) -> T) -> Self
    where
        Vec<T>: ToSql + Sync + Send + 'static,
    {
        self.column(name, "text", pick)
    }

    /// A column of bytes.
    pub(super) fn bytes<T>(self, name: &'static str, pick: impl Fn(&R) -> T) -> Self
    where
        Vec<T>: ToSql + Sync + Send + 'static,
    {
        self.column(name, "bytea", pick)
    }

    fn column<T>(mut self, name: &'static str, kind: &'static str, pick: impl Fn(&R) -> T) -> Self
    where
        Vec<T>: ToSql + Sync + Send + 'static,
    {
        let values: Vec<T> = self.rows.iter().map(pick).collect();
        self.columns.push((name, kind, Box::new(values)));
        self
    }

    /// The columns' names.
    pub(super) fn names(&self) -> Vec<&'static str> {
        self.columns.iter().map(|(name, ..)| *name).collect()
    }

    fn unnest(&self) -> String {
        let arrays: Vec<String> = self
            .columns
            .iter()
            .zip(1..)
            .map(|((_, kind, _), number)| format!("${number}::{kind}[]"))
            .collect();
        format!("unnest({})", arrays.join(", "))
    }

    /// Inserts the rows; `conflict` says what happens to those that are there.
    pub(super) fn insert(self, conflict: &str) -> Write {
        let sql = format!(
            "INSERT INTO {} AS t ({}) SELECT * FROM {}{conflict}",
            self.name,
            self.names().join(", "),
            self.unnest()
        );
        self.write(sql)
    }

    /// Updates the rows by this column.
    pub(super) fn update(self, key: &str) -> Write {
        let set: Vec<String> = self
            .names()
            .iter()
            .filter(|name| **name != key)
            .map(|name| format!("{name} = u.{name}"))
            .collect();
        let sql = format!(
            "UPDATE {} t SET {} FROM {} AS u ({}) WHERE t.{key} = u.{key}",
            self.name,
            set.join(", "),
            self.unnest(),
            self.names().join(", ")
        );
        self.write(sql)
    }

    /// Deletes the rows whose only column is one of these values.
    pub(super) fn delete(self) -> Write {
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
    pub(super) fn delete_where(self, condition: &str) -> Write {
        let sql = format!(
            "DELETE FROM {} t USING {} AS u ({}) WHERE {condition}",
            self.name,
            self.unnest(),
            self.names().join(", ")
        );
        self.write(sql)
    }

    fn write(self, sql: String) -> Write {
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
            table().update("id").sql,
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
}
