-- The seventeenth schema: rules of auto top-up, and what came of them.

ALTER TABLE accounts ADD COLUMN auto_top_up TEXT;                           -- JSON; NULL of most
CREATE INDEX accounts_auto_top_up ON accounts (id) WHERE auto_top_up IS NOT NULL;
