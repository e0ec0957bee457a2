-- The seventeenth schema, in which ledgers begin. Money is whole picodollars, times are milliseconds since 1970, ids and hashes are
-- raw bytes. The CHECKs repeat the rules of account.rs: a program with a mistake is stopped here. They say BETWEEN, because SQLite
-- makes a table at each use of an IN with more than two values. `ledger verify` compares texts with those of ledgers that came here
-- in steps, so columns that were once added still are.

-- `caps` are a JSON list of caps and the counts of their windows; NULL is none. So are those of customers.
CREATE TABLE keys (
    id          INTEGER PRIMARY KEY CHECK (id >= 0),
    label       TEXT    NOT NULL,
    models      TEXT,                       -- JSON list of slugs; NULL is all
    expires_at  INTEGER,
    rate        INTEGER CHECK (rate >= 0),
    concurrency INTEGER CHECK (concurrency >= 0),
    status      INTEGER NOT NULL CHECK (status BETWEEN 1 AND 3),   -- active, blocked, revoked
    secret      BLOB    NOT NULL CHECK (length(secret) = 32),
    old_secret  BLOB    CHECK (length(old_secret) = 32),
    old_until   INTEGER,
    created_at  INTEGER NOT NULL,
    created_by  TEXT    NOT NULL,
    caps TEXT,
    CHECK ((old_secret IS NULL) = (old_until IS NULL))
) STRICT;
ALTER TABLE keys ADD COLUMN customer INTEGER NOT NULL DEFAULT 0 CHECK (customer >= 0);
ALTER TABLE keys ADD COLUMN owner    INTEGER NOT NULL DEFAULT 0 CHECK (owner BETWEEN 0 AND 1);   -- of its customer's keys
ALTER TABLE keys ADD COLUMN made_by  INTEGER CHECK (made_by >= 0);                               -- the owner key that made it
ALTER TABLE keys ADD COLUMN token INTEGER CHECK (token >= 0);                                    -- that made it; NULL if it was made here
CREATE INDEX keys_by_creation ON keys (created_at, id);
CREATE INDEX keys_by_customer ON keys (customer, created_at, id);
CREATE TRIGGER keys_no_delete BEFORE DELETE ON keys BEGIN SELECT raise(ABORT, 'keys are never deleted'); END;

-- Customers own the money, and keys spend it. A claim stands only while nothing is available.
CREATE TABLE accounts (
    id         INTEGER PRIMARY KEY,
    credit     INTEGER NOT NULL CHECK (credit >= 0 AND credit <= 9000000000000000000),
    spent      INTEGER NOT NULL CHECK (spent >= 0),
    held       INTEGER NOT NULL CHECK (held >= 0),
    seq        INTEGER NOT NULL CHECK (seq >= 0),               -- of the key's newest entry
    last       INTEGER NOT NULL CHECK (last >= 0),              -- position of the key's newest entry; 0 is none
    last_at    INTEGER,
    hash       BLOB    NOT NULL CHECK (length(hash) = 32),      -- of the key's newest entry
    CHECK (spent + held <= credit)
) STRICT;
ALTER TABLE accounts ADD COLUMN label       TEXT    NOT NULL DEFAULT '';
ALTER TABLE accounts ADD COLUMN external_id TEXT;
ALTER TABLE accounts ADD COLUMN price_list  TEXT;
ALTER TABLE accounts ADD COLUMN low_balance INTEGER CHECK (low_balance >= 0);
ALTER TABLE accounts ADD COLUMN rate        INTEGER CHECK (rate >= 0);
ALTER TABLE accounts ADD COLUMN concurrency INTEGER CHECK (concurrency >= 0);
ALTER TABLE accounts ADD COLUMN status      INTEGER NOT NULL DEFAULT 1 CHECK (status BETWEEN 1 AND 3);   -- active, suspended, closed
ALTER TABLE accounts ADD COLUMN caps        TEXT;
ALTER TABLE accounts ADD COLUMN personal    BLOB    CHECK (length(personal) = 32);      -- hash of its personal data; NULL is none
ALTER TABLE accounts ADD COLUMN created_at  INTEGER NOT NULL DEFAULT 0;
ALTER TABLE accounts ADD COLUMN created_by  TEXT    NOT NULL DEFAULT '';
ALTER TABLE accounts ADD COLUMN audit_seq   INTEGER NOT NULL DEFAULT 0 CHECK (audit_seq >= 0);
ALTER TABLE accounts ADD COLUMN audit_last  INTEGER NOT NULL DEFAULT 0;                 -- position of its newest audit record
ALTER TABLE accounts ADD COLUMN audit_hash  BLOB    NOT NULL CHECK (length(audit_hash) = 32)
    DEFAULT x'0000000000000000000000000000000000000000000000000000000000000000';
ALTER TABLE accounts ADD COLUMN claim INTEGER NOT NULL DEFAULT 0 CHECK (claim >= 0 AND (claim = 0 OR credit = spent + held));
ALTER TABLE accounts ADD COLUMN token INTEGER CHECK (token >= 0);                      -- that made it; NULL if it was made here
ALTER TABLE accounts ADD COLUMN event_seq   INTEGER NOT NULL DEFAULT 0 CHECK (event_seq >= 0);           -- number of its newest event
ALTER TABLE accounts ADD COLUMN last_top_up INTEGER NOT NULL DEFAULT 0 CHECK (last_top_up >= 0);
ALTER TABLE accounts ADD COLUMN told        INTEGER NOT NULL DEFAULT 0 CHECK (told BETWEEN 0 AND 2);     -- of its balance: nothing, low, depleted
ALTER TABLE accounts ADD COLUMN auto_top_up      TEXT;                       -- JSON: when to ask for money, and what came of it; NULL is never
ALTER TABLE accounts ADD COLUMN opened INTEGER NOT NULL DEFAULT 0 CHECK (opened >= 0);  -- holds ever opened by its keys
CREATE UNIQUE INDEX accounts_by_external_id ON accounts (external_id) WHERE external_id IS NOT NULL;
CREATE INDEX accounts_by_creation ON accounts (created_at, id);
CREATE INDEX accounts_auto_top_up ON accounts (id) WHERE auto_top_up IS NOT NULL;
CREATE TRIGGER accounts_no_delete BEFORE DELETE ON accounts BEGIN SELECT raise(ABORT, 'accounts are never deleted'); END;

-- Name, address and metadata of customers. Nothing that is chained contains them.
CREATE TABLE personal_data (
    customer INTEGER PRIMARY KEY REFERENCES accounts (id),
    data     TEXT    NOT NULL                                           -- JSON, with the salt of its hash
) STRICT;

CREATE TABLE slugs (
    id           INTEGER PRIMARY KEY,
    slug         TEXT NOT NULL UNIQUE,
    published_at INTEGER                    -- NULL: used in an entry, never published here
) STRICT;

-- The journal. A customer's history is a walk along prev: an index on (customer, seq) would halve the write rate. The key of an entry
-- or act is NULL where it has the customer's number, and -1 if there is none.
CREATE TABLE entries (
    position       INTEGER PRIMARY KEY CHECK (position > 0),
    customer            INTEGER NOT NULL REFERENCES accounts (id),
    seq            INTEGER NOT NULL CHECK (seq > 0),
    prev           INTEGER NOT NULL CHECK (prev >= 0 AND prev < position),
    operation      BLOB    NOT NULL CHECK (length(operation) = 16),
    kind           INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 10),  -- top_up, charge, refund, adjust, grant, expired, void, reversal, move, write_off
    amount         INTEGER NOT NULL,
    balance_after  INTEGER NOT NULL CHECK (balance_after >= 0),
    at             INTEGER NOT NULL,
    actor          TEXT    NOT NULL,
    reference      TEXT,
    reason         TEXT,
    refunds        BLOB    CHECK (length(refunds) = 16),
    slug           INTEGER REFERENCES slugs (id),
    family         TEXT,
    target         TEXT,
    status         INTEGER,
    end_reason     TEXT,
    first_byte_ms  INTEGER,
    total_ms       INTEGER,
    answer_id      TEXT,
    hold           INTEGER CHECK (hold >= 0),
    loss           INTEGER CHECK (loss >= 0),
    evidence       INTEGER CHECK (evidence BETWEEN 1 AND 5),        -- provider, local, disputed, recovered, learned
    input          INTEGER,
    cache_read     INTEGER,
    cache_write    INTEGER,
    cache_write_1h INTEGER,
    output         INTEGER,
    reasoning      INTEGER,
    images         INTEGER,
    lines          TEXT,                                            -- [["what", count, rate], …]
    hash           BLOB    NOT NULL CHECK (length(hash) = 32),
    CHECK ((kind = 2) = (slug IS NOT NULL)),
    CHECK (kind <> 2 OR reference IS NULL),
    CHECK ((kind = 3) = (refunds IS NOT NULL)),
    CHECK (kind <> 2 OR amount <= 0),
    CHECK (kind NOT IN (1, 3) OR amount > 0)
) STRICT;
ALTER TABLE entries ADD COLUMN format INTEGER NOT NULL DEFAULT 1 CHECK (format BETWEEN 1 AND 3);   -- in which it is hashed
ALTER TABLE entries ADD COLUMN facts TEXT;          -- {"name":"value", …}, sorted by name; NULL is none
ALTER TABLE entries ADD COLUMN key INTEGER CHECK (key >= -1);
CREATE UNIQUE INDEX entries_by_operation ON entries (operation);
-- The two entries of a move share a reference, which is registered for the one that gives.
CREATE INDEX entries_by_reference ON entries (reference) WHERE reference IS NOT NULL;
CREATE INDEX entries_by_refund ON entries (refunds) WHERE refunds IS NOT NULL;
CREATE TRIGGER entries_no_update BEFORE UPDATE ON entries BEGIN SELECT raise(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER entries_no_delete BEFORE DELETE ON entries BEGIN SELECT raise(ABORT, 'the journal is append-only'); END;

-- Each reference once, as references are compared (reference.rs). entries.reference keeps the spelling.
CREATE TABLE refs (
    folded    TEXT NOT NULL PRIMARY KEY,
    operation BLOB NOT NULL UNIQUE CHECK (length(operation) = 16)   -- of the entry that has it
) STRICT;
CREATE TRIGGER refs_no_update BEFORE UPDATE ON refs BEGIN SELECT raise(ABORT, 'references are taken for ever'); END;
CREATE TRIGGER refs_no_delete BEFORE DELETE ON refs BEGIN SELECT raise(ABORT, 'references are taken for ever'); END;

CREATE TABLE holds (
    request    BLOB    PRIMARY KEY CHECK (length(request) = 16),
    key        INTEGER NOT NULL REFERENCES keys (id),
    opened     INTEGER NOT NULL CHECK (opened >= 0),            -- size at the beginning
    amount     INTEGER NOT NULL CHECK (amount >= opened),
    used       INTEGER NOT NULL CHECK (used >= 0),              -- cost at the last checkpoint
    slug       TEXT    NOT NULL,
    family     TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    epoch      INTEGER NOT NULL,
    checkpoint TEXT                                             -- the bill so far, JSON
) STRICT, WITHOUT ROWID;
ALTER TABLE holds ADD COLUMN day INTEGER NOT NULL DEFAULT 0;        -- since 1970, UTC, by the ledger's clock

-- A target as it served is one row, so that an hour's key is short.
CREATE TABLE targets (
    id           INTEGER PRIMARY KEY,
    target       TEXT    NOT NULL,          -- provider/model; empty: none was reached
    tier         TEXT    NOT NULL,          -- standard, flex, fast
    place        TEXT    NOT NULL,          -- global, us
    context_band INTEGER NOT NULL CHECK (context_band >= 0),    -- of the price's tiers of input size; 0 is the base price
    account      TEXT    NOT NULL,          -- of several at the provider; empty: its only one
    UNIQUE (target, tier, place, context_band, account)
) STRICT;
CREATE TABLE usage (
    hour            INTEGER NOT NULL,
    key             INTEGER NOT NULL,
    slug            INTEGER NOT NULL REFERENCES slugs (id),
    target          INTEGER NOT NULL REFERENCES targets (id),
    requests        INTEGER NOT NULL,
    input           INTEGER NOT NULL,
    cache_read      INTEGER NOT NULL,
    cache_write     INTEGER NOT NULL,
    cache_write_1h  INTEGER NOT NULL,
    output          INTEGER NOT NULL,
    reasoning       INTEGER NOT NULL,
    images          INTEGER NOT NULL,
    charge          INTEGER NOT NULL,
    loss            INTEGER NOT NULL,
    exposure        INTEGER NOT NULL,       -- what providers may still be owed
    cost            INTEGER NOT NULL,       -- at the operator's own prices, of requests that have one
    cache_write_12h INTEGER NOT NULL,
    calls           INTEGER NOT NULL,       -- of tools that the provider runs
    PRIMARY KEY (hour, key, slug, target)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
    position  INTEGER PRIMARY KEY CHECK (position > 0),
    customer       INTEGER NOT NULL REFERENCES accounts (id) DEFERRABLE INITIALLY DEFERRED,
    prev      INTEGER NOT NULL CHECK (prev >= 0 AND prev < position),
    operation BLOB    NOT NULL UNIQUE CHECK (length(operation) = 16),
    act       TEXT    NOT NULL,
    actor     TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    details   TEXT    NOT NULL,
    state     TEXT    NOT NULL,                                 -- the key after the act, JSON
    hash      BLOB    NOT NULL CHECK (length(hash) = 32)
) STRICT;
ALTER TABLE audit ADD COLUMN format INTEGER NOT NULL DEFAULT 1 CHECK (format BETWEEN 1 AND 3);
ALTER TABLE audit ADD COLUMN seq INTEGER NOT NULL DEFAULT 0 CHECK (seq >= 0);       -- among the customer's acts; 1 is the first
ALTER TABLE audit ADD COLUMN key INTEGER CHECK (key >= -1);
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
-- The check is on the audit, which every credit writes after its entry, so that charges do not pay for it.
CREATE TRIGGER audit_needs_reference BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM entries WHERE operation = new.operation AND reference IS NOT NULL AND kind <> 9)
    AND NOT EXISTS (SELECT 1 FROM refs WHERE operation = new.operation)
BEGIN SELECT raise(ABORT, 'this program is older than the ledger: its reference was not registered'); END;

CREATE TABLE sessions (
    token   BLOB    PRIMARY KEY CHECK (length(token) = 32),
    key     INTEGER NOT NULL REFERENCES keys (id),
    at      INTEGER NOT NULL,
    expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_key ON sessions (key);
CREATE INDEX sessions_by_end ON sessions (expires);

CREATE TABLE links (
    token   BLOB    PRIMARY KEY CHECK (length(token) = 32),
    key     INTEGER NOT NULL REFERENCES keys (id),
    expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX links_by_key ON links (key);
CREATE INDEX links_by_end ON links (expires);

CREATE TABLE epochs (
    epoch      INTEGER PRIMARY KEY,
    started_at INTEGER NOT NULL
) STRICT;

-- One row. Sums over keys may pass 64 bits, so they are decimal text. They say how things stood at the entry with the position
-- `entries`. Entries after it are added when the totals are read, so that the end of a hold writes one page less.
CREATE TABLE totals (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    keys    INTEGER NOT NULL,
    entries INTEGER NOT NULL,               -- also the position of the newest entry
    audits  INTEGER NOT NULL,               -- also the position of the newest audit record
    epoch   INTEGER NOT NULL,
    credit  TEXT    NOT NULL,
    spent   TEXT    NOT NULL,
    loss    TEXT    NOT NULL
) STRICT;
ALTER TABLE totals ADD COLUMN charges INTEGER NOT NULL DEFAULT 0;               -- entries that end a hold
ALTER TABLE totals ADD COLUMN exposure TEXT NOT NULL DEFAULT '0';       -- what providers may have billed beyond the charges
ALTER TABLE totals ADD COLUMN cost     TEXT NOT NULL DEFAULT '0';       -- at the operator's own prices, where they are known
INSERT INTO totals (id, keys, entries, audits, epoch, credit, spent, loss) VALUES (1, 0, 0, 0, 0, '0', '0', '0');

-- Which ledger this is; migrations.rs fills it.
CREATE TABLE identity (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    ledger     BLOB    NOT NULL CHECK (length(ledger) = 16),    -- random, for ever
    generation INTEGER NOT NULL CHECK (generation >= 1),        -- raised when the ledger goes on without entries it had
    made_at    INTEGER NOT NULL
) STRICT;
CREATE TRIGGER identity_no_delete BEFORE DELETE ON identity BEGIN SELECT raise(ABORT, 'a ledger keeps its identity'); END;
CREATE TRIGGER identity_no_change BEFORE UPDATE ON identity
WHEN new.id <> old.id OR new.ledger <> old.ledger OR new.made_at <> old.made_at OR new.generation < old.generation
BEGIN SELECT raise(ABORT, 'a ledger keeps its identity'); END;

CREATE TABLE votes (
    target   TEXT    NOT NULL,              -- provider/model
    question INTEGER NOT NULL,              -- pace, count
    day      INTEGER NOT NULL,              -- since 1970, UTC
    key      INTEGER NOT NULL,
    value    INTEGER NOT NULL CHECK (value >= 0),
    PRIMARY KEY (target, question, day, key)
) STRICT, WITHOUT ROWID;

-- What the gateway's own requests to targets in trouble cost the operator.
CREATE TABLE own_costs (
    hour   INTEGER NOT NULL,                -- since 1970, UTC
    target TEXT    NOT NULL,                -- provider/model
    epoch  INTEGER NOT NULL,                -- of the gateway that asked: each stores its own total
    cost   INTEGER NOT NULL CHECK (cost >= 0),
    PRIMARY KEY (hour, target, epoch)
) STRICT, WITHOUT ROWID;

CREATE TABLE files_acts (
    operation BLOB    PRIMARY KEY CHECK (length(operation) = 16),
    at        INTEGER NOT NULL,
    actor     TEXT    NOT NULL,
    details   TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TRIGGER files_acts_no_update BEFORE UPDATE ON files_acts BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER files_acts_no_delete BEFORE DELETE ON files_acts BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;

-- Only of payments that came with particulars, or of which something went back. Amounts in a payment's currency are ten-thousandths.
CREATE TABLE payments (
    folded     TEXT    PRIMARY KEY,                                     -- the reference, as it is compared
    reference  TEXT    NOT NULL,
    customer   INTEGER NOT NULL REFERENCES accounts (id),
    currency   TEXT    NOT NULL CHECK (length(currency) = 3),
    gross      INTEGER NOT NULL CHECK (gross > 0),
    tax        INTEGER NOT NULL CHECK (tax >= 0 AND tax < gross),
    credit     INTEGER NOT NULL CHECK (credit > 0),
    refunded   INTEGER NOT NULL CHECK (refunded >= 0),                  -- the three registers: the most that was ever told
    withdrawn  INTEGER NOT NULL CHECK (withdrawn >= 0),
    reinstated INTEGER NOT NULL CHECK (reinstated >= 0),
    status     INTEGER NOT NULL CHECK (status BETWEEN 1 AND 3),         -- booked, unapplied, returned
    why        TEXT,                                                    -- why it is unapplied
    actor      TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    CHECK ((status = 2) = (why IS NOT NULL))
) STRICT, WITHOUT ROWID;
ALTER TABLE payments ADD COLUMN token INTEGER CHECK (token >= 0);              -- that booked it; NULL if it was booked here
CREATE INDEX payments_by_customer ON payments (customer);
CREATE INDEX payments_unapplied ON payments (at) WHERE status = 2;

-- Tokens of the admin API, and what requests with an idempotency key were answered, for a day.
CREATE TABLE tokens (
    id         INTEGER PRIMARY KEY CHECK (id >= 0),
    label      TEXT    NOT NULL UNIQUE,                                 -- the actor of what it does
    role       INTEGER NOT NULL CHECK (role BETWEEN 1 AND 3),           -- read, sell, manage
    daily      INTEGER CHECK (daily > 0),                               -- the most that it may credit in a UTC day
    expires_at INTEGER,
    revoked    INTEGER NOT NULL CHECK (revoked BETWEEN 0 AND 1),
    secret     BLOB    NOT NULL UNIQUE CHECK (length(secret) = 32),
    sold_on    INTEGER,                                                 -- the last day on which it credited anything
    sold       INTEGER CHECK (sold >= 0 AND sold <= daily),             -- and how much then
    created_at INTEGER NOT NULL,
    created_by TEXT    NOT NULL,
    CHECK (role <> 2 OR daily IS NOT NULL),
    CHECK ((sold IS NULL) = (sold_on IS NULL))
) STRICT;
CREATE TABLE answers (
    id        BLOB    PRIMARY KEY CHECK (length(id) = 32),              -- hash of token, path and key
    token     INTEGER,
    at        INTEGER NOT NULL,
    operation BLOB    CHECK (length(operation) = 16),
    body      BLOB    NOT NULL CHECK (length(body) = 32),               -- hash of the request's body
    status    INTEGER NOT NULL,
    answer    TEXT    NOT NULL                                          -- without secrets
) STRICT, WITHOUT ROWID;
CREATE INDEX answers_by_age ON answers (at);

-- What sellers' programs hear about, and whom it is delivered to.
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

-- Codes that are worth credit once, in lots.
CREATE TABLE lots (
    id         INTEGER PRIMARY KEY CHECK (id >= 0),
    count      INTEGER NOT NULL CHECK (count > 0),
    amount     INTEGER NOT NULL CHECK (amount > 0),                         -- what each is worth
    expires_at INTEGER,
    once       INTEGER NOT NULL CHECK (once BETWEEN 0 AND 1),               -- a customer can redeem only one of them
    void       INTEGER NOT NULL CHECK (void BETWEEN 0 AND 1),               -- what is left is worth nothing
    redeemed   INTEGER NOT NULL CHECK (redeemed BETWEEN 0 AND count),
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    operation  BLOB NOT NULL CHECK (length(operation) = 16)                 -- that made it
) STRICT;
CREATE TABLE vouchers (
    code      BLOB PRIMARY KEY CHECK (length(code) = 32),                   -- hash of the code
    lot       INTEGER NOT NULL REFERENCES lots (id),
    number    INTEGER NOT NULL CHECK (number > 0),                          -- in its lot
    customer  INTEGER,                                                      -- who redeemed it
    operation BLOB CHECK (length(operation) = 16),                          -- of the entry
    CHECK ((customer IS NULL) = (operation IS NULL)),
    UNIQUE (lot, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX vouchers_redeemed ON vouchers (lot, customer) WHERE customer IS NOT NULL;

-- Acts on tokens and on lots of vouchers, which belong to no customer: one chain.
CREATE TABLE house_acts (
    seq       INTEGER PRIMARY KEY CHECK (seq > 0),
    at        INTEGER NOT NULL,
    actor     TEXT    NOT NULL,
    act       TEXT    NOT NULL,
    token     INTEGER REFERENCES tokens (id),
    lot       INTEGER REFERENCES lots (id),
    operation BLOB    NOT NULL UNIQUE CHECK (length(operation) = 16),
    details   TEXT    NOT NULL,                                         -- JSON, without secrets
    state     TEXT    NOT NULL,                                         -- JSON: the token or lot after the act
    hash      BLOB    NOT NULL CHECK (length(hash) = 32),
    CHECK ((token IS NULL) <> (lot IS NULL))
) STRICT;
CREATE TRIGGER house_acts_no_update BEFORE UPDATE ON house_acts BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER house_acts_no_delete BEFORE DELETE ON house_acts BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
