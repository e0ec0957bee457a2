-- The fourteenth schema: vouchers.

-- Codes that are worth credit once, in lots.
CREATE TABLE lots (
    id         INTEGER PRIMARY KEY CHECK (id >= 0),
    count      INTEGER NOT NULL CHECK (count > 0),
    amount     INTEGER NOT NULL CHECK (amount > 0),                         -- what each is worth
    expires_at INTEGER,
    once       INTEGER NOT NULL CHECK (once BETWEEN 0 AND 1),               -- a customer can redeem only one of them
    void       INTEGER NOT NULL CHECK (void BETWEEN 0 AND 1),               -- what is left is worth nothing
    redeemed   INTEGER NOT NULL CHECK (redeemed BETWEEN 0 AND count),
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    operation  BLOB NOT NULL CHECK (length(operation) = 16)                 -- that made it
) STRICT;
CREATE TABLE vouchers (
    code      BLOB PRIMARY KEY CHECK (length(code) = 32),                   -- hash of the code
    lot       INTEGER NOT NULL REFERENCES lots (id),
    number    INTEGER NOT NULL CHECK (number > 0),                          -- in its lot
    customer  INTEGER,                                                      -- who redeemed it
    operation BLOB CHECK (length(operation) = 16),                          -- of the entry
    CHECK ((customer IS NULL) = (operation IS NULL)),
    UNIQUE (lot, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX vouchers_redeemed ON vouchers (lot, customer) WHERE customer IS NOT NULL;
