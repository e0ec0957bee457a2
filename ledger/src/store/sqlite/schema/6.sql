-- The sixth schema: what the gateway's own requests to targets in trouble cost the operator.

CREATE TABLE own_costs (
    hour   INTEGER NOT NULL,                -- since 1970, UTC
    target TEXT    NOT NULL,                -- provider/model
    epoch  INTEGER NOT NULL,                -- of the gateway that asked: each stores its own total
    cost   INTEGER NOT NULL CHECK (cost >= 0),
    PRIMARY KEY (hour, target, epoch)
) STRICT, WITHOUT ROWID;
