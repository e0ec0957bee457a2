-- What requests cost, by the run that they name: of each key, month by month.
CREATE TABLE runs (
    customer INTEGER NOT NULL REFERENCES accounts (id),
    month    INTEGER NOT NULL,                                          -- its first day, since 1970, UTC
    run      TEXT    NOT NULL CHECK (length(run) <= 64),                -- '' stands for those beyond the most names of a month
    key      INTEGER NOT NULL REFERENCES keys (id),
    requests INTEGER NOT NULL CHECK (requests > 0),
    charge   INTEGER NOT NULL CHECK (charge >= 0),
    PRIMARY KEY (customer, month, run, key)
) STRICT, WITHOUT ROWID;
