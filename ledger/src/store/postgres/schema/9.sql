-- Money goes back: a payment's particulars, what of it went back, and what a customer owes for it. A claim stands only while nothing
-- is available.
ALTER TABLE accounts
    ADD COLUMN claim bigint NOT NULL DEFAULT 0 CHECK (claim >= 0 AND (claim = 0 OR credit = spent + held));

-- Only of payments that came with particulars, or of which something went back. Amounts in a payment's currency are ten-thousandths.
CREATE TABLE payments (
    folded     text   PRIMARY KEY,                                         -- the reference, as it is compared
    reference  text   NOT NULL,
    customer   bigint NOT NULL,
    currency   text   NOT NULL CHECK (length(currency) = 3),
    gross      bigint NOT NULL CHECK (gross > 0),
    tax        bigint NOT NULL CHECK (tax >= 0 AND tax < gross),
    credit     bigint NOT NULL CHECK (credit > 0),
    refunded   bigint NOT NULL CHECK (refunded >= 0),                      -- the three registers: the most that was ever told
    withdrawn  bigint NOT NULL CHECK (withdrawn >= 0),
    reinstated bigint NOT NULL CHECK (reinstated >= 0),
    status     bigint NOT NULL CHECK (status BETWEEN 1 AND 3),             -- booked, unapplied, returned
    why        text,                                                       -- why it is unapplied
    actor      text   NOT NULL,
    at         bigint NOT NULL,
    CHECK ((status = 2) = (why IS NOT NULL))
);
CREATE INDEX payments_by_customer ON payments (customer);
CREATE INDEX payments_unapplied ON payments (at) WHERE status = 2;
