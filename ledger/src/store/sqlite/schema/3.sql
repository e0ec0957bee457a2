-- The third schema: rows say in which format they are hashed, facts of a request that have no column of their own, acts numbered
-- per key, and usage by target with the operator's exposure and cost.

ALTER TABLE entries ADD COLUMN format INTEGER NOT NULL DEFAULT 1 CHECK (format BETWEEN 1 AND 2);
ALTER TABLE entries ADD COLUMN facts TEXT;          -- {"name":"value", …}, sorted by name; NULL is none

DROP TRIGGER audit_no_update;
ALTER TABLE audit ADD COLUMN format INTEGER NOT NULL DEFAULT 1 CHECK (format BETWEEN 1 AND 2);
ALTER TABLE audit ADD COLUMN seq INTEGER NOT NULL DEFAULT 0 CHECK (seq >= 0);       -- among the key's acts; 1 is the first
ALTER TABLE keys ADD COLUMN audit_seq INTEGER NOT NULL DEFAULT 0 CHECK (audit_seq >= 0);
UPDATE audit SET seq = n.seq
    FROM (SELECT position, row_number() OVER (PARTITION BY key ORDER BY position) AS seq FROM audit) AS n
    WHERE n.position = audit.position;
UPDATE keys SET audit_seq = n.acts
    FROM (SELECT key, count(*) AS acts FROM audit GROUP BY key) AS n WHERE n.key = keys.id;
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;

-- Holds ever opened: each has ended in a charge or is still open, so that one which was removed is missed.
ALTER TABLE totals ADD COLUMN opened INTEGER NOT NULL DEFAULT 0;
UPDATE totals SET opened = holds + (SELECT count(*) FROM entries WHERE kind = 2);

CREATE TABLE targets (
    id     INTEGER PRIMARY KEY,
    target TEXT NOT NULL UNIQUE             -- provider/model; empty: none was reached
) STRICT;
INSERT INTO targets (target) SELECT DISTINCT target FROM entries WHERE kind = 2 ORDER BY target;

-- The hourly sums again, from the entries, now by target.
DROP TABLE usage;
CREATE TABLE usage (
    hour           INTEGER NOT NULL,
    key            INTEGER NOT NULL,
    slug           INTEGER NOT NULL REFERENCES slugs (id),
    target         INTEGER NOT NULL REFERENCES targets (id),
    requests       INTEGER NOT NULL,
    input          INTEGER NOT NULL,
    cache_read     INTEGER NOT NULL,
    cache_write    INTEGER NOT NULL,
    cache_write_1h INTEGER NOT NULL,
    output         INTEGER NOT NULL,
    reasoning      INTEGER NOT NULL,
    images         INTEGER NOT NULL,
    charge         INTEGER NOT NULL,
    loss           INTEGER NOT NULL,
    exposure       INTEGER NOT NULL,        -- what providers may still be owed
    cost           INTEGER NOT NULL,        -- at the operator's own prices, of requests that have one
    PRIMARY KEY (hour, key, slug, target)
) STRICT, WITHOUT ROWID;
INSERT INTO usage
    SELECT (e.at - ((e.at % 3600000) + 3600000) % 3600000) / 3600000, e.key, e.slug, t.id, 1, e.input, e.cache_read, e.cache_write,
        e.cache_write_1h, e.output, e.reasoning, e.images, -e.amount, e.loss, 0, 0
    FROM entries e JOIN targets t ON t.target = e.target WHERE e.kind = 2
    ON CONFLICT (hour, key, slug, target) DO UPDATE SET requests = requests + 1, input = input + excluded.input,
        cache_read = cache_read + excluded.cache_read, cache_write = cache_write + excluded.cache_write,
        cache_write_1h = cache_write_1h + excluded.cache_write_1h, output = output + excluded.output,
        reasoning = reasoning + excluded.reasoning, images = images + excluded.images,
        charge = min(charge + excluded.charge, 9223372036854775807), loss = min(loss + excluded.loss, 9223372036854775807);
