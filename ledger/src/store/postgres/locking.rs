//! The statements that lock the customers of a batch, and read their keys.

use super::rows::{SELECT_CUSTOMER, SELECT_KEY_RECORD};

/// What a batch does about customers that others have locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Locked {
    Wait,
    /// Continues without them.
    Skip,
}

/// Locks the customers that hold operations name, themselves or by a key.
// In the order of their ids, in every batch of every gateway: otherwise two of them would wait for each other.
pub(super) fn lock_of_holds(locked: Locked) -> String {
    let skip = if locked == Locked::Skip {
        " SKIP LOCKED"
    } else {
        ""
    };
    format!(
        "{SELECT_CUSTOMER} WHERE a.id = ANY (ARRAY(SELECT unnest($4::bigint[]) \
         UNION SELECT customer FROM keys WHERE id = ANY ($1::bigint[]) \
         UNION SELECT k.customer FROM holds h JOIN keys k ON k.id = h.key WHERE h.request = ANY ($2::bytea[]) \
         UNION SELECT customer FROM entries WHERE operation = ANY ($3::bytea[]))) ORDER BY a.id FOR NO KEY UPDATE OF a{skip}"
    )
}

/// Locks the customers that any operation names.
pub(super) fn lock_of_all() -> String {
    format!(
        "{SELECT_CUSTOMER} WHERE a.id = ANY (ARRAY(SELECT unnest($4::bigint[]) \
         UNION SELECT customer FROM keys WHERE id = ANY ($1::bigint[]) \
         UNION SELECT k.customer FROM holds h JOIN keys k ON k.id = h.key WHERE h.request = ANY ($2::bytea[]) \
         UNION SELECT customer FROM entries WHERE operation = ANY ($3::bytea[]) \
         UNION SELECT customer FROM audit WHERE operation = ANY ($5::bytea[]) \
         UNION SELECT e.customer FROM refs r JOIN entries e ON e.operation = r.operation WHERE r.folded = ANY ($6::text[]) \
         UNION SELECT customer FROM payments WHERE folded = ANY ($6::text[]) \
         UNION SELECT k.customer FROM sessions s JOIN keys k ON k.id = s.key WHERE s.token = ANY ($7::bytea[]) \
         UNION SELECT k.customer FROM links l JOIN keys k ON k.id = l.key WHERE l.token = ANY ($7::bytea[]))) \
         ORDER BY a.id FOR NO KEY UPDATE OF a"
    )
}

/// The keys that hold operations name.
pub(super) fn keys_of_holds() -> String {
    format!(
        "{SELECT_KEY_RECORD} WHERE k.id = ANY (ARRAY(SELECT unnest($1::bigint[]) \
         UNION SELECT key FROM holds WHERE request = ANY ($2::bytea[]) \
         UNION SELECT coalesce(key, customer) FROM entries WHERE operation = ANY ($3::bytea[])))"
    )
}

/// The keys that any operation names.
pub(super) fn keys_of_all() -> String {
    format!(
        "{SELECT_KEY_RECORD} WHERE k.id = ANY (ARRAY(SELECT unnest($1::bigint[]) \
         UNION SELECT key FROM holds WHERE request = ANY ($2::bytea[]) \
         UNION SELECT coalesce(key, customer) FROM entries WHERE operation = ANY ($3::bytea[]) \
         UNION SELECT coalesce(key, customer) FROM audit WHERE operation = ANY ($4::bytea[]) \
         UNION SELECT coalesce(e.key, e.customer) FROM refs r JOIN entries e ON e.operation = r.operation \
             WHERE r.folded = ANY ($5::text[]) \
         UNION SELECT key FROM sessions WHERE token = ANY ($6::bytea[]) \
         UNION SELECT key FROM links WHERE token = ANY ($6::bytea[]) \
         UNION SELECT id FROM keys WHERE customer = ANY ($7::bigint[])))"
    )
}
