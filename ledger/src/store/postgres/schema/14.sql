-- Rules of auto top-up, and what came of them. Their column has been there since the eleventh, always NULL.
ALTER TABLE accounts RENAME COLUMN refill TO auto_top_up;
CREATE INDEX accounts_auto_top_up ON accounts (id) WHERE auto_top_up IS NOT NULL;
