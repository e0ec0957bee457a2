-- The eleventh schema: tokens of the admin API, what they made, and the answers that repetitions get.

CREATE TABLE tokens (
    id         INTEGER PRIMARY KEY CHECK (id >= 0),
    label      TEXT    NOT NULL UNIQUE,                                 -- the actor of what it does
    role       INTEGER NOT NULL CHECK (role BETWEEN 1 AND 3),           -- read, sell, manage
    daily      INTEGER CHECK (daily > 0),                               -- the most that it may credit in a UTC day
    expires_at INTEGER,
    revoked    INTEGER NOT NULL CHECK (revoked BETWEEN 0 AND 1),
    secret     BLOB    NOT NULL UNIQUE CHECK (length(secret) = 32),
    sold_on    INTEGER,                                                 -- the last day on which it credited anything
    sold       INTEGER CHECK (sold >= 0 AND sold <= daily),             -- and how much then
    created_at INTEGER NOT NULL,
    created_by TEXT    NOT NULL,
    CHECK (role <> 2 OR daily IS NOT NULL),
    CHECK ((sold IS NULL) = (sold_on IS NULL))
) STRICT;

-- One chain for all tokens, which belong to no customer.
CREATE TABLE token_acts (
    seq       INTEGER PRIMARY KEY CHECK (seq > 0),
    at        INTEGER NOT NULL,
    actor     TEXT    NOT NULL,
    act       TEXT    NOT NULL,
    token     INTEGER NOT NULL REFERENCES tokens (id),
    operation BLOB    NOT NULL UNIQUE CHECK (length(operation) = 16),
    details   TEXT    NOT NULL,                                         -- JSON, without secrets
    state     TEXT    NOT NULL,                                         -- JSON: the token after the act
    hash      BLOB    NOT NULL CHECK (length(hash) = 32)
) STRICT;
CREATE TRIGGER token_acts_no_update BEFORE UPDATE ON token_acts BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER token_acts_no_delete BEFORE DELETE ON token_acts BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;

-- What requests with an idempotency key were answered, for a day.
CREATE TABLE answers (
    id        BLOB    PRIMARY KEY CHECK (length(id) = 32),              -- hash of token, path and key
    token     INTEGER,
    at        INTEGER NOT NULL,
    operation BLOB    CHECK (length(operation) = 16),
    body      BLOB    NOT NULL CHECK (length(body) = 32),               -- hash of the request's body
    status    INTEGER NOT NULL,
    answer    TEXT    NOT NULL                                          -- without secrets
) STRICT, WITHOUT ROWID;
CREATE INDEX answers_by_age ON answers (at);

-- The token that made it; NULL if it was made here.
ALTER TABLE accounts ADD COLUMN token INTEGER CHECK (token >= 0);
ALTER TABLE keys ADD COLUMN token INTEGER CHECK (token >= 0);
ALTER TABLE payments ADD COLUMN token INTEGER CHECK (token >= 0);
