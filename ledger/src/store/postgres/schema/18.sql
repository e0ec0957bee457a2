-- What targets have taught are sums in place of votes, which are forgotten.
DROP TABLE votes;
CREATE TABLE lessons (
    target text   NOT NULL,                                     -- provider/model
    class  text   NOT NULL,                                     -- by its name
    tokens bigint NOT NULL CHECK (tokens >= 0),                 -- of streams
    millis bigint NOT NULL CHECK (millis >= 0),                 -- that these took
    theirs bigint NOT NULL CHECK (theirs >= 0),                 -- counted for prompts
    ours   bigint NOT NULL CHECK (ours >= 0),                   -- our count of them
    facts  bigint NOT NULL,                                     -- 1 hides, 2 caches, 4 writes unmarked, 8 its limit binds
    PRIMARY KEY (target, class)
);

-- Counts that exceeded what was held for them: of each customer at a target the largest in seven days.
CREATE TABLE excesses (
    target   text   NOT NULL,
    customer bigint NOT NULL,
    tokens   bigint NOT NULL CHECK (tokens >= 0),
    at       bigint NOT NULL,                                   -- the last one
    PRIMARY KEY (target, customer)
);

-- What a customer has paid, and what went back, is found without its charges.
CREATE INDEX entries_paid ON entries (customer) WHERE kind <> 2;
