-- The ledger's first schema. Money is whole picodollars, times are milliseconds since 1970, ids and hashes are raw bytes.
-- The CHECKs repeat the rules of account.rs: a program with a mistake is stopped here. They say BETWEEN, because SQLite makes a
-- table at each use of an IN with more than two values.

CREATE TABLE keys (
    id          INTEGER PRIMARY KEY CHECK (id >= 0),
    label       TEXT    NOT NULL,
    models      TEXT,                       -- JSON list of slugs; NULL is all
    expires_at  INTEGER,
    rate        INTEGER CHECK (rate >= 0),
    concurrency INTEGER CHECK (concurrency >= 0),
    status      INTEGER NOT NULL CHECK (status BETWEEN 1 AND 3),   -- active, blocked, revoked
    secret      BLOB    NOT NULL CHECK (length(secret) = 32),
    old_secret  BLOB    CHECK (length(old_secret) = 32),
    old_until   INTEGER,
    created_at  INTEGER NOT NULL,
    created_by  TEXT    NOT NULL,
    audit_last  INTEGER NOT NULL,           -- position of the key's newest audit record
    audit_hash  BLOB    NOT NULL CHECK (length(audit_hash) = 32),
    CHECK ((old_secret IS NULL) = (old_until IS NULL))
) STRICT;
CREATE INDEX keys_by_creation ON keys (created_at, id);

CREATE TABLE accounts (
    id         INTEGER PRIMARY KEY REFERENCES keys (id),
    credit     INTEGER NOT NULL CHECK (credit >= 0 AND credit <= 9000000000000000000),
    spent      INTEGER NOT NULL CHECK (spent >= 0),
    held       INTEGER NOT NULL CHECK (held >= 0),
    seq        INTEGER NOT NULL CHECK (seq >= 0),               -- of the key's newest entry
    last       INTEGER NOT NULL CHECK (last >= 0),              -- position of the key's newest entry; 0 is none
    last_at    INTEGER,
    hash       BLOB    NOT NULL CHECK (length(hash) = 32),      -- of the key's newest entry
    CHECK (spent + held <= credit)
) STRICT;

CREATE TABLE slugs (
    id           INTEGER PRIMARY KEY,
    slug         TEXT NOT NULL UNIQUE,
    published_at INTEGER                    -- NULL: used in an entry, never published here
) STRICT;

-- The journal. A key's history is a walk along prev: an index on (key, seq) would halve the write rate.
CREATE TABLE entries (
    position       INTEGER PRIMARY KEY CHECK (position > 0),
    key            INTEGER NOT NULL REFERENCES accounts (id),
    seq            INTEGER NOT NULL CHECK (seq > 0),
    prev           INTEGER NOT NULL CHECK (prev >= 0 AND prev < position),
    operation      BLOB    NOT NULL CHECK (length(operation) = 16),
    kind           INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 4),   -- top_up, charge, refund, adjust
    amount         INTEGER NOT NULL,
    balance_after  INTEGER NOT NULL CHECK (balance_after >= 0),
    at             INTEGER NOT NULL,
    actor          TEXT    NOT NULL,
    reference      TEXT,
    reason         TEXT,
    refunds        BLOB    CHECK (length(refunds) = 16),
    slug           INTEGER REFERENCES slugs (id),
    family         TEXT,
    target         TEXT,
    status         INTEGER,
    end_reason     TEXT,
    first_byte_ms  INTEGER,
    total_ms       INTEGER,
    answer_id      TEXT,
    hold           INTEGER CHECK (hold >= 0),
    loss           INTEGER CHECK (loss >= 0),
    evidence       INTEGER CHECK (evidence BETWEEN 1 AND 4),        -- provider, local, disputed, recovered
    input          INTEGER,
    cache_read     INTEGER,
    cache_write    INTEGER,
    cache_write_1h INTEGER,
    output         INTEGER,
    reasoning      INTEGER,
    images         INTEGER,
    lines          TEXT,                                            -- [["what", count, rate], …]
    hash           BLOB    NOT NULL CHECK (length(hash) = 32),
    CHECK ((kind = 2) = (slug IS NOT NULL)),
    CHECK ((kind = 2) = (reference IS NULL)),
    CHECK ((kind = 3) = (refunds IS NOT NULL)),
    CHECK (kind <> 2 OR amount <= 0),
    CHECK (kind NOT IN (1, 3) OR amount > 0)
) STRICT;
CREATE UNIQUE INDEX entries_by_operation ON entries (operation);
CREATE UNIQUE INDEX entries_by_reference ON entries (reference) WHERE reference IS NOT NULL;
CREATE INDEX entries_by_refund ON entries (refunds) WHERE refunds IS NOT NULL;
CREATE TRIGGER entries_no_update BEFORE UPDATE ON entries BEGIN SELECT raise(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER entries_no_delete BEFORE DELETE ON entries BEGIN SELECT raise(ABORT, 'the journal is append-only'); END;

CREATE TABLE holds (
    request    BLOB    PRIMARY KEY CHECK (length(request) = 16),
    key        INTEGER NOT NULL REFERENCES accounts (id),
    opened     INTEGER NOT NULL CHECK (opened >= 0),            -- size at the beginning
    amount     INTEGER NOT NULL CHECK (amount >= opened),
    used       INTEGER NOT NULL CHECK (used >= 0),              -- cost at the last checkpoint
    slug       TEXT    NOT NULL,
    family     TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    epoch      INTEGER NOT NULL,
    checkpoint TEXT                                             -- the bill so far, JSON
) STRICT, WITHOUT ROWID;

CREATE TABLE usage (
    hour           INTEGER NOT NULL,
    key            INTEGER NOT NULL,
    slug           INTEGER NOT NULL REFERENCES slugs (id),
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
    PRIMARY KEY (hour, key, slug)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
    position  INTEGER PRIMARY KEY CHECK (position > 0),
    key       INTEGER NOT NULL REFERENCES keys (id) DEFERRABLE INITIALLY DEFERRED,
    prev      INTEGER NOT NULL CHECK (prev >= 0 AND prev < position),
    operation BLOB    NOT NULL UNIQUE CHECK (length(operation) = 16),
    act       TEXT    NOT NULL,
    actor     TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    details   TEXT    NOT NULL,
    state     TEXT    NOT NULL,                                 -- the key after the act, JSON
    hash      BLOB    NOT NULL CHECK (length(hash) = 32)
) STRICT;
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER keys_no_delete BEFORE DELETE ON keys BEGIN SELECT raise(ABORT, 'keys are never deleted'); END;
CREATE TRIGGER accounts_no_delete BEFORE DELETE ON accounts BEGIN SELECT raise(ABORT, 'accounts are never deleted'); END;

CREATE TABLE sessions (
    token   BLOB    PRIMARY KEY CHECK (length(token) = 32),
    key     INTEGER NOT NULL REFERENCES keys (id),
    at      INTEGER NOT NULL,
    expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_key ON sessions (key);
CREATE INDEX sessions_by_end ON sessions (expires);

CREATE TABLE links (
    token   BLOB    PRIMARY KEY CHECK (length(token) = 32),
    key     INTEGER NOT NULL REFERENCES keys (id),
    expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX links_by_key ON links (key);
CREATE INDEX links_by_end ON links (expires);

CREATE TABLE epochs (
    epoch      INTEGER PRIMARY KEY,
    started_at INTEGER NOT NULL
) STRICT;

-- One row, written once for each batch. Sums over keys may pass 64 bits, so they are decimal text.
CREATE TABLE totals (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    keys    INTEGER NOT NULL,
    entries INTEGER NOT NULL,               -- also the position of the newest entry
    audits  INTEGER NOT NULL,               -- also the position of the newest audit record
    holds   INTEGER NOT NULL,
    epoch   INTEGER NOT NULL,
    credit  TEXT    NOT NULL,
    spent   TEXT    NOT NULL,
    held    TEXT    NOT NULL,
    loss    TEXT    NOT NULL
) STRICT;
INSERT INTO totals VALUES (1, 0, 0, 0, 0, 0, '0', '0', '0', '0');
