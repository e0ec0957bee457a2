-- Credit that tokens keep free of their daily bounds while buyers pay. It moves no money. A row goes when its payment comes, when it is
-- given up, or an hour after its time.
CREATE TABLE reservations (
    id       bigint PRIMARY KEY CHECK (id >= 0),
    token    bigint NOT NULL,
    customer bigint,                                                    -- NULL: whom the payment makes
    credit   bigint NOT NULL CHECK (credit > 0),
    until    bigint NOT NULL,
    at       bigint NOT NULL
);
CREATE INDEX reservations_by_token ON reservations (token);
