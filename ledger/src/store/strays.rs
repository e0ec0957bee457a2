//! Rows that follow from nothing: what the verifiers of both stores ask at the end, in words that both databases know.

/// A name for such rows, and how many there are.
pub(super) type Question = (&'static str, &'static str);

/// Asked of every ledger.
pub(super) const STRAYS: [Question; 12] = [
    (
        "a hold of no key",
        "SELECT count(*) FROM holds WHERE key NOT IN (SELECT id FROM keys)",
    ),
    (
        "a session of no key",
        "SELECT count(*) FROM sessions WHERE key NOT IN (SELECT id FROM keys)",
    ),
    (
        "a sign-in link of no key",
        "SELECT count(*) FROM links WHERE key NOT IN (SELECT id FROM keys)",
    ),
    (
        "personal data of no customer",
        "SELECT count(*) FROM personal_data WHERE customer NOT IN (SELECT id FROM accounts)",
    ),
    (
        "an addressee of no payment",
        "SELECT count(*) FROM addressees WHERE folded NOT IN (SELECT folded FROM refs) AND folded NOT IN (SELECT folded FROM payments)",
    ),
    (
        "a voucher that was redeemed for no entry",
        "SELECT count(*) FROM vouchers v WHERE operation IS NOT NULL AND NOT EXISTS (SELECT 1 FROM entries e JOIN lots l ON l.id = v.lot \
         WHERE e.operation = v.operation AND e.customer = v.customer AND e.amount = CASE WHEN l.plan IS NULL THEN l.amount ELSE 0 END)",
    ),
    (
        "a reference of no entry",
        "SELECT count(*) FROM refs r WHERE NOT EXISTS (SELECT 1 FROM entries e WHERE e.operation = r.operation)",
    ),
    (
        "an event of no customer, or with a number that its customer has not reached",
        "SELECT count(*) FROM events e WHERE e.customer IS NOT NULL \
         AND NOT EXISTS (SELECT 1 FROM accounts a WHERE a.id = e.customer AND a.event_seq >= e.seq AND e.seq > 0)",
    ),
    (
        "a number that two events of a customer have",
        "SELECT count(*) FROM (SELECT 1 FROM events WHERE customer IS NOT NULL GROUP BY customer, seq HAVING count(*) > 1) twice",
    ),
    (
        // Old events are forgotten, the oldest first. They are read once: nothing finds those of one customer.
        "a customer whose newest event is missing",
        "SELECT count(*) FROM (SELECT customer, max(seq) AS newest FROM events WHERE customer IS NOT NULL GROUP BY customer) e \
         JOIN accounts a ON a.id = e.customer WHERE e.newest < a.event_seq",
    ),
    (
        "a stored answer of no token",
        "SELECT count(*) FROM answers WHERE token IS NOT NULL AND token NOT IN (SELECT id FROM tokens)",
    ),
    (
        "a day of no token",
        "SELECT count(*) FROM token_days WHERE token NOT IN (SELECT id FROM tokens)",
    ),
];

/// The fault that so many of them are.
pub(super) fn fault(what: &str, count: i64) -> Option<String> {
    (count > 0).then(|| format!("{count} × {what}"))
}
