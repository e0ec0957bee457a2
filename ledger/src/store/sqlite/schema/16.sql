-- The sixteenth schema: acts that belong to no customer are on tokens and on lots of vouchers, in one chain. migrations.rs adds one for
-- each lot that is there.

CREATE TABLE house_acts (
    seq       INTEGER PRIMARY KEY CHECK (seq > 0),
    at        INTEGER NOT NULL,
    actor     TEXT    NOT NULL,
    act       TEXT    NOT NULL,
    token     INTEGER REFERENCES tokens (id),
    lot       INTEGER REFERENCES lots (id),
    operation BLOB    NOT NULL UNIQUE CHECK (length(operation) = 16),
    details   TEXT    NOT NULL,                                         -- JSON, without secrets
    state     TEXT    NOT NULL,                                         -- JSON: the token or lot after the act
    hash      BLOB    NOT NULL CHECK (length(hash) = 32),
    CHECK ((token IS NULL) <> (lot IS NULL))
) STRICT;
INSERT INTO house_acts SELECT seq, at, actor, act, token, NULL, operation, details, state, hash FROM token_acts;
DROP TABLE token_acts;
CREATE TRIGGER house_acts_no_update BEFORE UPDATE ON house_acts BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER house_acts_no_delete BEFORE DELETE ON house_acts BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
