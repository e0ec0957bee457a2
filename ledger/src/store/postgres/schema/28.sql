-- What the program that made a key notes of it.
ALTER TABLE keys ADD COLUMN metadata text;                              -- JSON
