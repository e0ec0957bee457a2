-- Credit that tokens keep free of their daily bounds while buyers pay. It moves no money. A row goes when its payment comes, when it is
-- given up, or an hour after its time.
CREATE TABLE reservations (
    id       INTEGER PRIMARY KEY CHECK (id >= 0),
    token    INTEGER NOT NULL REFERENCES tokens (id),
    customer INTEGER REFERENCES accounts (id),                          -- NULL: whom the payment makes
    credit   INTEGER NOT NULL CHECK (credit > 0),
    until    INTEGER NOT NULL,
    at       INTEGER NOT NULL
) STRICT;
CREATE INDEX reservations_by_token ON reservations (token);
