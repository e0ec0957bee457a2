-- Grants: credit that may end, in the order in which it is used. What is left of them is part of their customers' accounts.
CREATE TABLE grants (
    id           INTEGER PRIMARY KEY CHECK (id >= 0),
    customer     INTEGER NOT NULL REFERENCES accounts (id),
    kind         INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 2),         -- promotional, paid
    amount       INTEGER NOT NULL CHECK (amount > 0),
    priority     INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 100),
    effective_at INTEGER NOT NULL,
    expires_at   INTEGER CHECK (expires_at > effective_at),
    models       TEXT,                                                  -- JSON list of slugs; NULL is all
    remaining    INTEGER NOT NULL CHECK (remaining BETWEEN 0 AND amount),
    held         INTEGER NOT NULL CHECK (held BETWEEN 0 AND remaining),
    status       INTEGER NOT NULL CHECK (status BETWEEN 1 AND 5),       -- pending, active, exhausted, expired, voided
    told         INTEGER CHECK (told > 0),                              -- days before its end, of the last notice
    reference    TEXT,
    folded       TEXT    UNIQUE,                                        -- the reference, as it is compared
    created_at   INTEGER NOT NULL,
    created_by   TEXT    NOT NULL,
    -- What has ended keeps only what running requests hold.
    CHECK (status <= 2 OR remaining = held),
    CHECK (status <> 1 OR held = 0)
) STRICT;
CREATE INDEX grants_by_customer ON grants (customer) WHERE status <= 2 OR held > 0;
CREATE INDEX grants_by_creation ON grants (created_at, id);
CREATE INDEX grants_of_customer ON grants (customer, created_at, id);
CREATE TRIGGER grants_no_delete BEFORE DELETE ON grants BEGIN SELECT raise(ABORT, 'grants are never deleted'); END;

-- When something happens next to a customer's open grants; NULL: there are none.
ALTER TABLE accounts ADD COLUMN next_grant_at INTEGER;
CREATE INDEX accounts_next_grant ON accounts (next_grant_at) WHERE next_grant_at IS NOT NULL;
-- A claim may stand while credit that nobody paid is free. SQLite changes no CHECK, so the column is made again.
DROP INDEX accounts_owing;
CREATE TEMP TABLE kept_claims AS SELECT id, claim FROM accounts WHERE claim > 0;
ALTER TABLE accounts DROP COLUMN claim;
ALTER TABLE accounts ADD COLUMN claim INTEGER NOT NULL DEFAULT 0 CHECK (claim >= 0);
UPDATE accounts SET claim = (SELECT k.claim FROM kept_claims k WHERE k.id = accounts.id) WHERE id IN (SELECT id FROM kept_claims);
DROP TABLE kept_claims;
CREATE INDEX accounts_owing ON accounts (id) WHERE claim > 0;

-- [[grant or null, amount], …] in the order of use; NULL is the pool alone. Of holds the parts of grants, and the rest is the pool's.
ALTER TABLE entries ADD COLUMN parts TEXT;
ALTER TABLE holds ADD COLUMN parts TEXT;

-- What a lot's vouchers give, as in grants. Those of before give what counts as paid.
ALTER TABLE lots ADD COLUMN kind INTEGER NOT NULL DEFAULT 2 CHECK (kind BETWEEN 1 AND 2);
