CREATE TABLE loans (
    id         INTEGER PRIMARY KEY,
    member_id  INTEGER NOT NULL REFERENCES members (id) ON DELETE RESTRICT,
    book_id    INTEGER NOT NULL REFERENCES books (id),
    lent_at    TEXT    NOT NULL DEFAULT CURRENT_TIMESTAMP,
    until      TEXT    NOT NULL,
    returned   TEXT    CHECK (returned IS NULL OR returned >= lent_at)
) STRICT;
CREATE INDEX loans_open ON loans (member_id, until) WHERE returned IS NULL;

WITH overdue AS (
    SELECT member_id, count(*) AS n, min(until) AS oldest
    FROM loans WHERE returned IS NULL AND until < date('now')
    GROUP BY member_id HAVING count(*) > 1
)
SELECT m.name, m.email, o.n, o.oldest, coalesce(f.total_cents, 0) / 100.0 AS fee
FROM overdue AS o
JOIN members AS m ON m.id = o.member_id
LEFT JOIN (SELECT member_id, sum(cents) AS total_cents FROM fees GROUP BY 1) AS f USING (member_id)
ORDER BY o.n DESC, o.oldest LIMIT 50 OFFSET 100;
