-- The fourth schema: exposure and cost of all time, as decimal text like the other sums over keys. migrations.rs adds them up.

ALTER TABLE totals ADD COLUMN exposure TEXT NOT NULL DEFAULT '0';       -- what providers may have billed beyond the charges
ALTER TABLE totals ADD COLUMN cost     TEXT NOT NULL DEFAULT '0';       -- at the operator's own prices, where they are known
