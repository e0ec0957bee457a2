-- Whom the receipts of payments are addressed to. It goes when the customer's personal data goes; NULL is nobody. Payments of before have
-- no row.
CREATE TABLE addressees (
    folded   TEXT    PRIMARY KEY,                                       -- the payment's reference, as it is compared
    customer INTEGER NOT NULL REFERENCES accounts (id),
    data     TEXT                                                       -- JSON, with the salt of its hash
) STRICT;
CREATE INDEX addressees_by_customer ON addressees (customer);
