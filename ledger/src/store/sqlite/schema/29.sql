-- The key in whose caps what this one holds and is charged counts, too: the owner key that made it. Keys from before count in no other's.
ALTER TABLE keys ADD COLUMN counts_in INTEGER CHECK (counts_in >= 0);
-- Those of an owner key, and those of a customer that may still be used: they are listed, and counted when one more is made.
CREATE INDEX keys_counted ON keys (counts_in, coalesce(expires_at, 9223372036854775807)) WHERE counts_in IS NOT NULL;
CREATE INDEX keys_made ON keys (customer, coalesce(expires_at, 9223372036854775807)) WHERE counts_in IS NOT NULL AND status <> 3;
