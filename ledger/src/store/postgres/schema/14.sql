-- Rules of auto top-up, and what came of them.
ALTER TABLE accounts ADD COLUMN auto_top_up text;                                  -- JSON; NULL of most
CREATE INDEX accounts_auto_top_up ON accounts (id) WHERE auto_top_up IS NOT NULL;
