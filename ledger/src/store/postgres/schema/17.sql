-- A hold moves in both directions, and its moves are numbered: one that was overtaken changes nothing.
ALTER TABLE holds DROP CONSTRAINT holds_check;
ALTER TABLE holds ADD CHECK (amount >= 0);
ALTER TABLE holds ADD COLUMN moves bigint NOT NULL DEFAULT 0 CHECK (moves >= 0);        -- the number of its last move
-- Those of before moved once at most, as far as anybody can tell.
UPDATE holds SET moves = 1 WHERE checkpoint IS NOT NULL;
