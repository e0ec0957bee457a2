-- What was served is part of the rollup, and so are tokens cached for twelve hours and calls of tools.
ALTER TABLE usage
    ADD COLUMN tier            text   NOT NULL DEFAULT 'standard',         -- standard, flex, fast
    ADD COLUMN place           text   NOT NULL DEFAULT 'global',           -- global, us
    ADD COLUMN context_band    bigint NOT NULL DEFAULT 0 CHECK (context_band >= 0),   -- of the price's tiers of input size
    ADD COLUMN account         text   NOT NULL DEFAULT '',                 -- of several at the provider; empty: its only one
    ADD COLUMN cache_write_12h bigint NOT NULL DEFAULT 0,
    ADD COLUMN calls           bigint NOT NULL DEFAULT 0,                  -- of tools that the provider runs
    DROP CONSTRAINT usage_pkey,
    ADD PRIMARY KEY (key, hour, slug, target, tier, place, context_band, account);

-- Every configuration that a gateway put into force, with what it changed.

CREATE TABLE files_acts (
    operation bytea  PRIMARY KEY CHECK (length(operation) = 16),
    at        bigint NOT NULL,
    actor     text   NOT NULL,
    details   text   NOT NULL
);
CREATE TRIGGER files_acts_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON files_acts
    FOR EACH STATEMENT EXECUTE FUNCTION farebox_refuse();
