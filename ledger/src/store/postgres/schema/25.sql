-- What requests cost, by the run that they name: of each key, month by month.
CREATE TABLE runs (
    customer bigint NOT NULL REFERENCES accounts (id),
    month    bigint NOT NULL,                                           -- its first day, since 1970, UTC
    run      text   NOT NULL CHECK (length(run) <= 64),                 -- '' stands for those beyond the most names of a month
    key      bigint NOT NULL REFERENCES keys (id),
    requests bigint NOT NULL CHECK (requests > 0),
    charge   bigint NOT NULL CHECK (charge >= 0),
    PRIMARY KEY (customer, month, run, key)
);
