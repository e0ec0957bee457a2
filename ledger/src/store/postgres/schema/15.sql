-- What a token does in a UTC day is bounded, so that a stolen one does no more. One row for each day on which it did something. Of
-- plans and reservations nothing is counted yet.
CREATE TABLE token_days (
    token             bigint NOT NULL,
    day               bigint NOT NULL,                                              -- since 1970, UTC, by the database's clock
    booked            bigint NOT NULL DEFAULT 0 CHECK (booked >= 0),                -- credit
    payments          bigint NOT NULL DEFAULT 0 CHECK (payments >= 0),              -- that it was booked for
    customers         bigint NOT NULL DEFAULT 0 CHECK (customers >= 0),             -- made
    keys              bigint NOT NULL DEFAULT 0 CHECK (keys >= 0),                  -- made
    reissues          bigint NOT NULL DEFAULT 0 CHECK (reissues >= 0),
    reversed          bigint NOT NULL DEFAULT 0 CHECK (reversed >= 0),              -- credit that was taken back
    reversed_payments bigint NOT NULL DEFAULT 0 CHECK (reversed_payments >= 0),     -- of which something was taken back for the first time
    unapplied         bigint NOT NULL DEFAULT 0 CHECK (unapplied >= 0),             -- payments stored as such
    reserved          bigint NOT NULL DEFAULT 0 CHECK (reserved >= 0),
    plans             bigint NOT NULL DEFAULT 0 CHECK (plans >= 0),
    PRIMARY KEY (token, day)
);
INSERT INTO token_days (token, day, booked) SELECT id, sold_on, sold FROM tokens WHERE sold_on IS NOT NULL;
-- Payments of before are counted where they were booked, so that as many can be taken back.
INSERT INTO token_days AS d (token, day, payments)
    SELECT token, at / 86400000, count(*) FROM payments WHERE token IS NOT NULL AND status = 1 GROUP BY 1, 2
    ON CONFLICT (token, day) DO UPDATE SET payments = excluded.payments;
ALTER TABLE tokens DROP COLUMN sold_on, DROP COLUMN sold;

-- When a key that a token made was first used; whoever has it knows its secret then. Not known of keys of before, unless somebody is
-- signed in with one.
ALTER TABLE keys ADD COLUMN used_at bigint;
UPDATE keys SET used_at = (SELECT min(at) FROM sessions WHERE key = keys.id) WHERE token IS NOT NULL;

-- What was told about money that goes back while a token's bound refused to book it: JSON; NULL is nothing.
ALTER TABLE payments ADD COLUMN waiting text;
CREATE INDEX payments_waiting ON payments (at) WHERE waiting IS NOT NULL;
