-- The tenth schema: money goes back. A payment's particulars, what of it went back, and what a customer owes for it.

-- A claim stands only while nothing is available.
ALTER TABLE accounts ADD COLUMN claim INTEGER NOT NULL DEFAULT 0 CHECK (claim >= 0 AND (claim = 0 OR credit = spent + held));

-- Only of payments that came with particulars, or of which something went back. Amounts in a payment's currency are ten-thousandths.
CREATE TABLE payments (
    folded     TEXT    PRIMARY KEY,                                     -- the reference, as it is compared
    reference  TEXT    NOT NULL,
    customer   INTEGER NOT NULL REFERENCES accounts (id),
    currency   TEXT    NOT NULL CHECK (length(currency) = 3),
    gross      INTEGER NOT NULL CHECK (gross > 0),
    tax        INTEGER NOT NULL CHECK (tax >= 0 AND tax < gross),
    credit     INTEGER NOT NULL CHECK (credit > 0),
    refunded   INTEGER NOT NULL CHECK (refunded >= 0),                  -- the three registers: the most that was ever told
    withdrawn  INTEGER NOT NULL CHECK (withdrawn >= 0),
    reinstated INTEGER NOT NULL CHECK (reinstated >= 0),
    status     INTEGER NOT NULL CHECK (status BETWEEN 1 AND 3),         -- booked, unapplied, returned
    why        TEXT,                                                    -- why it is unapplied
    actor      TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    CHECK ((status = 2) = (why IS NOT NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX payments_by_customer ON payments (customer);
CREATE INDEX payments_unapplied ON payments (at) WHERE status = 2;
