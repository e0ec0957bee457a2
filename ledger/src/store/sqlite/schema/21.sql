-- What targets have taught are sums in place of votes, which are forgotten.
DROP TABLE votes;
CREATE TABLE lessons (
    target TEXT    NOT NULL,                                    -- provider/model
    class  TEXT    NOT NULL,                                    -- by its name
    tokens INTEGER NOT NULL CHECK (tokens >= 0),                -- of streams
    millis INTEGER NOT NULL CHECK (millis >= 0),                -- that these took
    theirs INTEGER NOT NULL CHECK (theirs >= 0),                -- counted for prompts
    ours   INTEGER NOT NULL CHECK (ours >= 0),                  -- our count of them
    facts  INTEGER NOT NULL,                                    -- 1 hides, 2 caches, 4 writes unmarked, 8 its limit binds
    PRIMARY KEY (target, class)
) STRICT, WITHOUT ROWID;

-- Counts that exceeded what was held for them: of each customer at a target the largest in seven days.
CREATE TABLE excesses (
    target   TEXT    NOT NULL,
    customer INTEGER NOT NULL,
    tokens   INTEGER NOT NULL CHECK (tokens >= 0),
    at       INTEGER NOT NULL,                                  -- the last one
    PRIMARY KEY (target, customer)
) STRICT, WITHOUT ROWID;

-- What a customer has paid, and what went back, is found without its charges. A list of three kinds would
-- be a table of its own in each insert.
CREATE INDEX entries_paid ON entries (customer) WHERE kind <> 2;
