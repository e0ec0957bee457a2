-- The seventh schema: what was served (tier, place, context band, provider account) is part of the rollup, and so are tokens cached
-- for twelve hours and calls of tools. A target as it served is one row of targets, so that an hour's key is as short as it was.

ALTER TABLE usage RENAME TO usage_6;
ALTER TABLE targets RENAME TO targets_6;

CREATE TABLE targets (
    id           INTEGER PRIMARY KEY,
    target       TEXT    NOT NULL,          -- provider/model; empty: none was reached
    tier         TEXT    NOT NULL,          -- standard, flex, fast
    place        TEXT    NOT NULL,          -- global, us
    context_band INTEGER NOT NULL CHECK (context_band >= 0),    -- of the price's tiers of input size; 0 is the base price
    account      TEXT    NOT NULL,          -- of several at the provider; empty: its only one
    UNIQUE (target, tier, place, context_band, account)
) STRICT;
INSERT INTO targets SELECT id, target, 'standard', 'global', 0, '' FROM targets_6;

CREATE TABLE usage (
    hour            INTEGER NOT NULL,
    key             INTEGER NOT NULL,
    slug            INTEGER NOT NULL REFERENCES slugs (id),
    target          INTEGER NOT NULL REFERENCES targets (id),
    requests        INTEGER NOT NULL,
    input           INTEGER NOT NULL,
    cache_read      INTEGER NOT NULL,
    cache_write     INTEGER NOT NULL,
    cache_write_1h  INTEGER NOT NULL,
    output          INTEGER NOT NULL,
    reasoning       INTEGER NOT NULL,
    images          INTEGER NOT NULL,
    charge          INTEGER NOT NULL,
    loss            INTEGER NOT NULL,
    exposure        INTEGER NOT NULL,       -- what providers may still be owed
    cost            INTEGER NOT NULL,       -- at the operator's own prices, of requests that have one
    cache_write_12h INTEGER NOT NULL,
    calls           INTEGER NOT NULL,       -- of tools that the provider runs
    PRIMARY KEY (hour, key, slug, target)
) STRICT, WITHOUT ROWID;
INSERT INTO usage
    SELECT hour, key, slug, target, requests, input, cache_read, cache_write, cache_write_1h, output, reasoning, images, charge,
        loss, exposure, cost, 0, 0
    FROM usage_6;
DROP TABLE usage_6;
DROP TABLE targets_6;

-- Every configuration that a gateway put into force, with what it changed.

CREATE TABLE files_acts (
    operation BLOB    PRIMARY KEY CHECK (length(operation) = 16),
    at        INTEGER NOT NULL,
    actor     TEXT    NOT NULL,
    details   TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TRIGGER files_acts_no_update BEFORE UPDATE ON files_acts BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER files_acts_no_delete BEFORE DELETE ON files_acts BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
