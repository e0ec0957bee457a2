-- What gateways' own requests to targets in trouble cost the operator, and who of them asks.

CREATE TABLE own_costs (
    hour   bigint NOT NULL,                                            -- since 1970, UTC
    target text   NOT NULL,                                            -- provider/model
    epoch  bigint NOT NULL,                                            -- of the gateway that asked: each stores its own total
    cost   bigint NOT NULL CHECK (cost >= 0),
    PRIMARY KEY (hour, target, epoch)
);

CREATE TABLE probe_leases (
    place    text        PRIMARY KEY,                                  -- a target, in the gateways' words
    epoch    bigint      NOT NULL,                                     -- of the gateway that asks
    asked_at timestamptz NOT NULL,                                     -- its latest request
    told_at  timestamptz,                                              -- when it told what it had found
    told_of  timestamptz,                                              -- which request that was
    found    text        NOT NULL DEFAULT ''                           -- in the gateways' words
);
