-- What a token does in a UTC day is bounded, so that a stolen one does no more. One row for each day on which it did something. Of
-- plans and reservations nothing is counted yet.
CREATE TABLE token_days (
    token             INTEGER NOT NULL REFERENCES tokens (id),
    day               INTEGER NOT NULL,                                     -- since 1970, UTC, by the ledger's clock
    booked            INTEGER NOT NULL DEFAULT 0 CHECK (booked >= 0),               -- credit
    payments          INTEGER NOT NULL DEFAULT 0 CHECK (payments >= 0),             -- that it was booked for
    customers         INTEGER NOT NULL DEFAULT 0 CHECK (customers >= 0),            -- made
    keys              INTEGER NOT NULL DEFAULT 0 CHECK (keys >= 0),                 -- made
    reissues          INTEGER NOT NULL DEFAULT 0 CHECK (reissues >= 0),
    reversed          INTEGER NOT NULL DEFAULT 0 CHECK (reversed >= 0),             -- credit that was taken back
    reversed_payments INTEGER NOT NULL DEFAULT 0 CHECK (reversed_payments >= 0),    -- of which something was taken back for the first time
    unapplied         INTEGER NOT NULL DEFAULT 0 CHECK (unapplied >= 0),            -- payments stored as such
    reserved          INTEGER NOT NULL DEFAULT 0 CHECK (reserved >= 0),
    plans             INTEGER NOT NULL DEFAULT 0 CHECK (plans >= 0),
    PRIMARY KEY (token, day)
) STRICT, WITHOUT ROWID;

-- A token counted its last day in its own row. SQLite drops no column that a CHECK names, so the table is made again; acts that refer to
-- its rows find them again before the transaction ends.
PRAGMA defer_foreign_keys = ON;
CREATE TEMP TABLE kept_tokens AS SELECT * FROM tokens;
DROP TABLE tokens;
CREATE TABLE tokens (
    id         INTEGER PRIMARY KEY CHECK (id >= 0),
    label      TEXT    NOT NULL UNIQUE,                                 -- the actor of what it does
    role       INTEGER NOT NULL CHECK (role BETWEEN 1 AND 3),           -- read, sell, manage
    daily      INTEGER CHECK (daily > 0),                               -- the most that it may credit in a UTC day
    expires_at INTEGER,
    revoked    INTEGER NOT NULL CHECK (revoked BETWEEN 0 AND 1),
    secret     BLOB    NOT NULL UNIQUE CHECK (length(secret) = 32),
    created_at INTEGER NOT NULL,
    created_by TEXT    NOT NULL,
    CHECK (role <> 2 OR daily IS NOT NULL)
) STRICT;
INSERT INTO tokens SELECT id, label, role, daily, expires_at, revoked, secret, created_at, created_by FROM kept_tokens;
INSERT INTO token_days (token, day, booked) SELECT id, sold_on, sold FROM kept_tokens WHERE sold_on IS NOT NULL;
DROP TABLE kept_tokens;
-- Payments of before are counted where they were booked, so that as many can be taken back.
INSERT INTO token_days (token, day, payments)
    SELECT token, at / 86400000, count(*) FROM payments WHERE token IS NOT NULL AND status = 1 GROUP BY 1, 2
    ON CONFLICT DO UPDATE SET payments = excluded.payments;

-- When a key that a token made was first used; whoever has it knows its secret then. Not known of keys of before, unless somebody is
-- signed in with one.
ALTER TABLE keys ADD COLUMN used_at INTEGER;
UPDATE keys SET used_at = (SELECT min(at) FROM sessions WHERE key = keys.id) WHERE token IS NOT NULL;

-- What was told about money that goes back while a token's bound refused to book it: JSON; NULL is nothing.
ALTER TABLE payments ADD COLUMN waiting TEXT;
CREATE INDEX payments_waiting ON payments (at) WHERE waiting IS NOT NULL;
