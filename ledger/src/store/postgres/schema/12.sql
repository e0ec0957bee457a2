-- Vouchers.

-- Codes that are worth credit once, in lots.
CREATE TABLE lots (
    id         bigint PRIMARY KEY CHECK (id >= 0),
    count      bigint NOT NULL CHECK (count > 0),
    amount     bigint NOT NULL CHECK (amount > 0),                         -- what each is worth
    expires_at bigint,
    once       bigint NOT NULL CHECK (once BETWEEN 0 AND 1),               -- a customer can redeem only one of them
    void       bigint NOT NULL CHECK (void BETWEEN 0 AND 1),               -- what is left is worth nothing
    redeemed   bigint NOT NULL CHECK (redeemed BETWEEN 0 AND count),
    created_at bigint NOT NULL,
    created_by text NOT NULL,
    operation  bytea NOT NULL CHECK (octet_length(operation) = 16)                 -- that made it
);
CREATE TABLE vouchers (
    code      bytea PRIMARY KEY CHECK (octet_length(code) = 32),                   -- hash of the code
    lot       bigint NOT NULL,
    number    bigint NOT NULL CHECK (number > 0),                          -- in its lot
    customer  bigint,                                                      -- who redeemed it
    operation bytea CHECK (octet_length(operation) = 16),                          -- of the entry
    CHECK ((customer IS NULL) = (operation IS NULL)),
    UNIQUE (lot, number)
);
CREATE INDEX vouchers_redeemed ON vouchers (lot, customer) WHERE customer IS NOT NULL;
