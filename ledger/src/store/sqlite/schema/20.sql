-- A hold moves in both directions, and its moves are numbered: one that was overtaken changes nothing. SQLite changes no CHECK, so the
-- table is made again.
CREATE TEMP TABLE kept_holds AS SELECT * FROM holds;
DROP TABLE holds;
CREATE TABLE holds (
    request    BLOB    PRIMARY KEY CHECK (length(request) = 16),
    key        INTEGER NOT NULL REFERENCES keys (id),
    opened     INTEGER NOT NULL CHECK (opened >= 0),            -- size at the beginning
    amount     INTEGER NOT NULL CHECK (amount >= 0),
    used       INTEGER NOT NULL CHECK (used >= 0),              -- cost at the last checkpoint
    slug       TEXT    NOT NULL,
    family     TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    epoch      INTEGER NOT NULL,
    checkpoint TEXT,                                            -- the bill so far, JSON
    day        INTEGER NOT NULL,                                -- since 1970, UTC, by the ledger's clock
    moves      INTEGER NOT NULL CHECK (moves >= 0)              -- the number of its last move
) STRICT, WITHOUT ROWID;
-- Those of before moved once at most, as far as anybody can tell.
INSERT INTO holds SELECT *, checkpoint IS NOT NULL FROM kept_holds;
DROP TABLE kept_holds;
