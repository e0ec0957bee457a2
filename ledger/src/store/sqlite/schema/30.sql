-- What keys and customers have that set nothing of their own: one row, or none.
CREATE TABLE defaults (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    state TEXT    NOT NULL                                              -- JSON
) STRICT;

-- An act may be on the defaults: on neither a token nor a lot.
CREATE TABLE house_acts_of_all (
    seq       INTEGER PRIMARY KEY CHECK (seq > 0),
    at        INTEGER NOT NULL,
    actor     TEXT    NOT NULL,
    act       TEXT    NOT NULL,
    token     INTEGER REFERENCES tokens (id),
    lot       INTEGER REFERENCES lots (id),
    operation BLOB    NOT NULL UNIQUE CHECK (length(operation) = 16),
    details   TEXT    NOT NULL,                                         -- JSON, without secrets
    state     TEXT    NOT NULL,                                         -- JSON: what it is on, after the act
    hash      BLOB    NOT NULL CHECK (length(hash) = 32),
    CHECK (token IS NULL OR lot IS NULL)
) STRICT;
INSERT INTO house_acts_of_all SELECT seq, at, actor, act, token, lot, operation, details, state, hash FROM house_acts;
DROP TABLE house_acts;
ALTER TABLE house_acts_of_all RENAME TO house_acts;
CREATE TRIGGER house_acts_no_update BEFORE UPDATE ON house_acts BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER house_acts_no_delete BEFORE DELETE ON house_acts BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
