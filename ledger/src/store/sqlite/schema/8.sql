-- The eighth schema: caps of keys with what they count, and the day on which a hold was opened, whose windows count it.

ALTER TABLE keys ADD COLUMN caps TEXT;              -- JSON list of caps and the counts of their windows; NULL is none
ALTER TABLE holds ADD COLUMN day INTEGER NOT NULL DEFAULT 0;        -- since 1970, UTC, by the ledger's clock
UPDATE holds SET day = (at - ((at % 86400000) + 86400000) % 86400000) / 86400000;
