-- Grants: credit that may end, in the order in which it is used. What is left of them is part of their customers' accounts.
CREATE TABLE grants (
    id           bigint PRIMARY KEY CHECK (id >= 0),
    customer     bigint NOT NULL REFERENCES accounts (id),
    kind         bigint NOT NULL CHECK (kind BETWEEN 1 AND 2),          -- promotional, paid
    amount       bigint NOT NULL CHECK (amount > 0),
    priority     bigint NOT NULL CHECK (priority BETWEEN 0 AND 100),
    effective_at bigint NOT NULL,
    expires_at   bigint CHECK (expires_at > effective_at),
    models       text,                                                  -- JSON list of slugs; NULL is all
    remaining    bigint NOT NULL CHECK (remaining BETWEEN 0 AND amount),
    held         bigint NOT NULL CHECK (held BETWEEN 0 AND remaining),
    status       bigint NOT NULL CHECK (status BETWEEN 1 AND 5),        -- pending, active, exhausted, expired, voided
    told         bigint CHECK (told > 0),                               -- days before its end, of the last notice
    reference    text,
    folded       text   UNIQUE,                                         -- the reference, as it is compared
    created_at   bigint NOT NULL,
    created_by   text   NOT NULL,
    -- What has ended keeps only what running requests hold.
    CHECK (status <= 2 OR remaining = held),
    CHECK (status <> 1 OR held = 0)
);
CREATE INDEX grants_by_customer ON grants (customer) WHERE status <= 2 OR held > 0;
CREATE INDEX grants_by_creation ON grants (created_at, id);
CREATE INDEX grants_of_customer ON grants (customer, created_at, id);
CREATE TRIGGER grants_stay BEFORE DELETE OR TRUNCATE ON grants
    FOR EACH STATEMENT EXECUTE FUNCTION farebox_refuse();

-- When something happens next to a customer's open grants; NULL: there are none.
ALTER TABLE accounts ADD COLUMN next_grant_at bigint;
CREATE INDEX accounts_next_grant ON accounts (next_grant_at) WHERE next_grant_at IS NOT NULL;
-- A claim may stand while credit that nobody paid is free.
ALTER TABLE accounts DROP CONSTRAINT accounts_check1;
ALTER TABLE accounts ADD CONSTRAINT accounts_claim_check CHECK (claim >= 0);

-- [[grant or null, amount], …] in the order of use; NULL is the pool alone. Of holds the parts of grants, and the rest is the pool's.
ALTER TABLE entries ADD COLUMN parts text;
ALTER TABLE holds ADD COLUMN parts text;

-- What a lot's vouchers give, as in grants. Those of before give what counts as paid.
ALTER TABLE lots ADD COLUMN kind bigint NOT NULL DEFAULT 2 CHECK (kind BETWEEN 1 AND 2);
