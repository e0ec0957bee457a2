-- Whom the receipts of payments are addressed to. It goes when the customer's personal data goes; NULL is nobody. Payments of before have
-- no row.
CREATE TABLE addressees (
    folded   text   PRIMARY KEY,                                           -- the payment's reference, as it is compared
    customer bigint NOT NULL,
    data     text                                                          -- JSON, with the salt of its hash
);
CREATE INDEX addressees_by_customer ON addressees (customer);
