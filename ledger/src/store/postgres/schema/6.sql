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
