-- What all gateways together count of a key, and what each gateway says of itself.
ALTER TABLE accounts
    ADD COLUMN running  bigint NOT NULL DEFAULT 0 CHECK (running >= 0),    -- open holds
    ADD COLUMN paced_to bigint NOT NULL DEFAULT 0;                         -- until when the rate is used up, microseconds since 1970
UPDATE accounts SET running = n.running FROM (SELECT key, count(*) AS running FROM holds GROUP BY key) n WHERE n.key = id;

ALTER TABLE nodes
    ADD COLUMN configuration text   NOT NULL DEFAULT '',                   -- hashes of its catalog and routes
    ADD COLUMN holds         bigint NOT NULL DEFAULT 0,                    -- open at its last renewal
    ADD COLUMN per_second    bigint NOT NULL DEFAULT 0;                    -- requests that began in the second before it
