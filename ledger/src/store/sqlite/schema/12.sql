-- The twelfth schema: events. What sellers' programs hear about, whom it is delivered to, and what is kept to know when something has
-- to be told.

ALTER TABLE accounts ADD COLUMN event_seq   INTEGER NOT NULL DEFAULT 0 CHECK (event_seq >= 0);           -- number of its newest event
ALTER TABLE accounts ADD COLUMN last_top_up INTEGER NOT NULL DEFAULT 0 CHECK (last_top_up >= 0);
ALTER TABLE accounts ADD COLUMN told        INTEGER NOT NULL DEFAULT 0 CHECK (told BETWEEN 0 AND 2);     -- of its balance: nothing, low, depleted
ALTER TABLE accounts ADD COLUMN refill      TEXT;                       -- JSON: when to ask for money, and what came of it; NULL is never
UPDATE accounts SET last_top_up = t.amount
    FROM (SELECT customer, amount, max(position) FROM entries WHERE kind = 1 GROUP BY customer) t WHERE t.customer = accounts.id;

CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    id       BLOB    NOT NULL UNIQUE CHECK (length(id) = 16),
    kind     TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    customer INTEGER,                                                   -- NULL of what concerns all
    seq      INTEGER,
    data     TEXT    NOT NULL,                                          -- JSON
    CHECK ((customer IS NULL) = (seq IS NULL))
) STRICT;

CREATE TABLE webhooks (
    id       INTEGER PRIMARY KEY,                                       -- follows from its address
    url      TEXT    NOT NULL UNIQUE,
    since    INTEGER NOT NULL,
    handed   BLOB    CHECK (length(handed) = 16),                       -- the newest event that has rows of delivery
    disabled INTEGER,                                                   -- when, and why
    why      TEXT,
    CHECK ((disabled IS NULL) = (why IS NULL))
) STRICT;

CREATE TABLE deliveries (
    event    BLOB    NOT NULL CHECK (length(event) = 16),
    webhook  INTEGER NOT NULL,
    status   INTEGER NOT NULL CHECK (status BETWEEN 1 AND 3),           -- waiting, delivered, given up
    tries    INTEGER NOT NULL CHECK (tries >= 0),
    due      INTEGER NOT NULL,
    why      TEXT,                                                      -- what became of the last try
    PRIMARY KEY (event, webhook)
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_due ON deliveries (webhook, due) WHERE status = 1;
