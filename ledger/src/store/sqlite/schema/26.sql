-- The part of the cost that the answers told.
ALTER TABLE usage ADD COLUMN told INTEGER NOT NULL DEFAULT 0;
