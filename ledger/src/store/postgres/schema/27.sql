-- What keys and customers have that set nothing of their own: one row, or none.
CREATE TABLE defaults (
    id    bigint PRIMARY KEY CHECK (id = 1),
    state text   NOT NULL                                                  -- JSON
);

-- An act may be on the defaults: on neither a token nor a lot.
ALTER TABLE house_acts DROP CONSTRAINT house_acts_check;
ALTER TABLE house_acts ADD CONSTRAINT house_acts_check CHECK (token IS NULL OR lot IS NULL);
