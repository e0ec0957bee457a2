//! Multi-row statements: one array of values for each column.

use tokio_postgres::types::ToSql;

pub(super) type Value = Box<dyn ToSql + Sync + Send>;

/// A statement over columns: one array for each.
pub(super) struct Write {
    pub(super) sql: String,
    pub(super) columns: Vec<Value>,
}

impl Write {
    pub(super) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.columns
            .iter()
            .map(|column| &**column as &(dyn ToSql + Sync))
            .collect()
    }
}

/// One column of all rows.
pub(super) fn column<R, T: ToSql + Sync + Send + 'static>(
    rows: &[R],
    pick: impl Fn(&R) -> T,
) -> Value
where
    Vec<T>: ToSql,
{
    Box::new(rows.iter().map(pick).collect::<Vec<T>>())
}

/// Inserts rows: `columns` are `name type` pairs.
pub(super) fn insert(table: &str, columns: &[(&str, &str, Value)]) -> String {
    let names: Vec<&str> = columns.iter().map(|(name, ..)| *name).collect();
    format!(
        "INSERT INTO {table} ({}) SELECT * FROM {}",
        names.join(", "),
        unnest(columns)
    )
}

fn unnest(columns: &[(&str, &str, Value)]) -> String {
    let arrays: Vec<String> = columns
        .iter()
        .zip(1..)
        .map(|((_, kind, _), number)| format!("${number}::{kind}[]"))
        .collect();
    format!("unnest({})", arrays.join(", "))
}

pub(super) fn update(table: &str, key: &str, columns: &[(&str, &str, Value)]) -> String {
    let names: Vec<&str> = columns.iter().map(|(name, ..)| *name).collect();
    let set: Vec<String> = names
        .iter()
        .filter(|name| **name != key)
        .map(|name| format!("{name} = u.{name}"))
        .collect();
    format!(
        "UPDATE {table} t SET {} FROM {} AS u ({}) WHERE t.{key} = u.{key}",
        set.join(", "),
        unnest(columns),
        names.join(", ")
    )
}

pub(super) fn write(sql: String, columns: Vec<(&str, &str, Value)>) -> Write {
    Write {
        sql,
        columns: columns.into_iter().map(|(.., value)| value).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_written_out_of_their_columns() {
        let columns = vec![
            ("id", "bigint", column(&[1_i64], |id| *id)),
            ("label", "text", column(&[1], |_| "a".to_owned())),
        ];
        assert_eq!(
            insert("keys", &columns),
            "INSERT INTO keys (id, label) SELECT * FROM unnest($1::bigint[], $2::text[])"
        );
        assert_eq!(
            update("keys", "id", &columns),
            "UPDATE keys t SET label = u.label FROM unnest($1::bigint[], $2::text[]) AS u (id, label) WHERE t.id = u.id"
        );
    }
}
