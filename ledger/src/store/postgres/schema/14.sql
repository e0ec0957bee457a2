-- The fourteenth schema, in which ledgers begin. The same facts as on SQLite: money is whole picodollars, times are milliseconds
-- since 1970, ids and hashes are raw bytes, and the CHECKs repeat the rules of account.rs. What differs: entries are numbered per
-- customer alone, nothing is counted over all keys, and no row is written by every batch. Constraints have the names that they have
-- in databases that came here in steps.

CREATE TABLE identity (
    id         smallint PRIMARY KEY CHECK (id = 1),
    ledger     bytea    NOT NULL CHECK (octet_length(ledger) = 16),
    generation bigint   NOT NULL CHECK (generation >= 1),
    made_at    bigint   NOT NULL,
    version    integer  NOT NULL                -- of this schema
);

CREATE TABLE keys (
    id          bigint  PRIMARY KEY CHECK (id >= 0),
    label       text    NOT NULL,
    models      text,                           -- JSON list of slugs; NULL is all
    expires_at  bigint,
    rate        bigint  CHECK (rate >= 0),
    concurrency bigint  CHECK (concurrency >= 0),
    status      bigint  NOT NULL CHECK (status BETWEEN 1 AND 3),       -- active, blocked, revoked
    secret      bytea   NOT NULL CHECK (octet_length(secret) = 32),
    old_secret  bytea   CHECK (octet_length(old_secret) = 32),
    old_until   bigint,
    created_at  bigint  NOT NULL,
    created_by  text    NOT NULL,
    caps        text,                           -- JSON list of caps and the counts of their windows; NULL is none
    customer    bigint  NOT NULL DEFAULT 0 CHECK (customer >= 0),
    owner       bigint  NOT NULL DEFAULT 0 CHECK (owner BETWEEN 0 AND 1),  -- of its customer's keys
    made_by     bigint  CHECK (made_by >= 0),   -- the owner key that made it
    running     bigint  CHECK (running >= 0),   -- open holds; NULL: it has no limits of its own
    paced_to    bigint,                         -- as in accounts
    token       bigint  CHECK (token >= 0),     -- that made it; NULL if it was made here
    CHECK ((old_secret IS NULL) = (old_until IS NULL))
);
CREATE INDEX keys_by_creation ON keys (created_at, id);
CREATE INDEX keys_by_customer ON keys (customer, created_at, id);

-- Customers own the money, and keys spend it. A claim stands only while nothing is available. Half of each page stays free, so that an
-- update finds room beside the row and touches no index.
CREATE TABLE accounts (
    id          bigint PRIMARY KEY,
    credit      bigint NOT NULL CHECK (credit >= 0 AND credit <= 9000000000000000000),
    spent       bigint NOT NULL CHECK (spent >= 0),
    held        bigint NOT NULL CHECK (held >= 0),
    seq         bigint NOT NULL CHECK (seq >= 0),                      -- of the customer's newest entry
    last        bigint NOT NULL CHECK (last >= 0),                     -- position of the customer's newest entry; 0 is none
    last_at     bigint,
    hash        bytea  NOT NULL CHECK (octet_length(hash) = 32),
    opened      bigint NOT NULL CHECK (opened >= 0),                   -- holds ever opened: each is open or has ended in a charge
    running     bigint NOT NULL DEFAULT 0 CHECK (running >= 0),        -- open holds
    paced_to    bigint NOT NULL DEFAULT 0,                             -- until when the rate is used up, microseconds since 1970
    label       text   NOT NULL DEFAULT '',
    external_id text,
    price_list  text,
    low_balance bigint CHECK (low_balance >= 0),
    rate        bigint CHECK (rate >= 0),
    concurrency bigint CHECK (concurrency >= 0),
    status      bigint NOT NULL DEFAULT 1 CHECK (status BETWEEN 1 AND 3),          -- active, suspended, closed
    caps        text,                                                  -- as in keys
    personal    bytea  CHECK (octet_length(personal) = 32),            -- hash of its personal data; NULL is none
    created_at  bigint NOT NULL DEFAULT 0,
    created_by  text   NOT NULL DEFAULT '',
    audit_seq   bigint NOT NULL DEFAULT 0 CHECK (audit_seq >= 0),
    audit_last  bigint NOT NULL DEFAULT 0,                             -- position of its newest act
    audit_hash  bytea  NOT NULL DEFAULT decode(repeat('00', 32), 'hex') CHECK (octet_length(audit_hash) = 32),
    claim       bigint NOT NULL DEFAULT 0 CONSTRAINT accounts_check1 CHECK (claim >= 0 AND (claim = 0 OR credit = spent + held)),
    token       bigint CHECK (token >= 0),                             -- that made it; NULL if it was made here
    event_seq   bigint NOT NULL DEFAULT 0 CHECK (event_seq >= 0),      -- number of its newest event
    last_top_up bigint NOT NULL DEFAULT 0 CHECK (last_top_up >= 0),
    told        bigint NOT NULL DEFAULT 0 CHECK (told BETWEEN 0 AND 2),            -- of its balance: nothing, low, depleted
    auto_top_up text,                                                  -- JSON: when to ask for money; NULL is never
    CONSTRAINT accounts_check CHECK (spent <= credit - held)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX accounts_by_external_id ON accounts (external_id) WHERE external_id IS NOT NULL;
CREATE INDEX accounts_by_creation ON accounts (created_at, id);
CREATE INDEX accounts_auto_top_up ON accounts (id) WHERE auto_top_up IS NOT NULL;

-- Name, address and metadata of customers. Nothing that is chained contains them.
CREATE TABLE personal_data (
    customer bigint PRIMARY KEY,
    data     text   NOT NULL                                               -- JSON, with the salt of its hash
);

-- Places of entries and acts, for display and paging: each transaction takes a block. They ascend within a customer; among customers they
-- have gaps and no meaning.
CREATE SEQUENCE positions INCREMENT 2048;

-- The key of an entry or act is NULL where it has the customer's number, and -1 if there is none.
CREATE TABLE entries (
    customer       bigint  NOT NULL,
    seq            bigint  NOT NULL CHECK (seq > 0),
    position       bigint  NOT NULL CHECK (position > 0),
    operation      bytea   NOT NULL CHECK (octet_length(operation) = 16),
    kind           bigint  NOT NULL CHECK (kind BETWEEN 1 AND 10),     -- top_up, charge, refund, adjust, grant, expired, void, reversal, move, write_off
    amount         bigint  NOT NULL,
    balance_after  bigint  NOT NULL CHECK (balance_after >= 0),
    at             bigint  NOT NULL,
    actor          text    NOT NULL,
    reference      text,
    reason         text,
    refunds        bytea   CHECK (octet_length(refunds) = 16),
    slug           text,
    family         text,
    target         text,
    status         bigint,
    end_reason     text,
    first_byte_ms  bigint,
    total_ms       bigint,
    answer_id      text,
    hold           bigint  CHECK (hold >= 0),
    loss           bigint  CHECK (loss >= 0),
    evidence       bigint  CHECK (evidence BETWEEN 1 AND 5),           -- provider, local, disputed, recovered, learned
    input          bigint,
    cache_read     bigint,
    cache_write    bigint,
    cache_write_1h bigint,
    output         bigint,
    reasoning      bigint,
    images         bigint,
    lines          text,                                               -- [["what", count, rate], …]
    facts          text,                                               -- {"name":"value", …}, sorted by name; NULL is none
    format         bigint  NOT NULL CHECK (format BETWEEN 1 AND 3),
    hash           bytea   NOT NULL CHECK (octet_length(hash) = 32),
    key            bigint  CHECK (key >= -1),
    PRIMARY KEY (customer, seq),
    CONSTRAINT entries_check CHECK ((kind = 2) = (slug IS NOT NULL)),
    CONSTRAINT entries_reference_check CHECK (kind <> 2 OR reference IS NULL),
    CONSTRAINT entries_check2 CHECK ((kind = 3) = (refunds IS NOT NULL)),
    CONSTRAINT entries_check3 CHECK (kind <> 2 OR amount <= 0),
    CONSTRAINT entries_check4 CHECK (kind NOT IN (1, 3) OR amount > 0)
);
CREATE UNIQUE INDEX entries_by_operation ON entries (operation);
CREATE UNIQUE INDEX entries_by_position ON entries (position);
CREATE INDEX entries_by_refund ON entries (refunds) WHERE refunds IS NOT NULL;
CREATE INDEX entries_by_key ON entries (key, seq) WHERE key IS NOT NULL;

-- Each reference once, as references are compared (reference.rs).
CREATE TABLE refs (
    folded    text  PRIMARY KEY,
    operation bytea NOT NULL UNIQUE CHECK (octet_length(operation) = 16)
);

CREATE TABLE holds (
    request    bytea  PRIMARY KEY CHECK (octet_length(request) = 16),
    key        bigint NOT NULL,
    opened     bigint NOT NULL CHECK (opened >= 0),                    -- size at the beginning
    amount     bigint NOT NULL CHECK (amount >= opened),
    used       bigint NOT NULL CHECK (used >= 0),                      -- cost at the last checkpoint
    slug       text   NOT NULL,
    family     text   NOT NULL,
    at         bigint NOT NULL,
    epoch      bigint NOT NULL CHECK (epoch >= 0),
    checkpoint text,                                                   -- the bill so far, JSON
    day        bigint NOT NULL DEFAULT 0                               -- since 1970, UTC, by the ledger's clock
) WITH (fillfactor = 70);
CREATE INDEX holds_by_epoch ON holds (epoch);
CREATE INDEX holds_by_key ON holds (key);

CREATE TABLE usage (
    key            bigint NOT NULL,
    hour           bigint NOT NULL,
    slug           text   NOT NULL,
    target         text   NOT NULL,                                    -- provider/model; empty: none was reached
    requests       bigint NOT NULL,
    input          bigint NOT NULL,
    cache_read     bigint NOT NULL,
    cache_write    bigint NOT NULL,
    cache_write_1h bigint NOT NULL,
    output         bigint NOT NULL,
    reasoning      bigint NOT NULL,
    images         bigint NOT NULL,
    charge         bigint NOT NULL,
    loss           bigint NOT NULL,
    exposure       bigint NOT NULL,
    cost           bigint NOT NULL,
    tier            text   NOT NULL DEFAULT 'standard',                -- standard, flex, fast
    place           text   NOT NULL DEFAULT 'global',                  -- global, us
    context_band    bigint NOT NULL DEFAULT 0 CHECK (context_band >= 0),           -- of the price's tiers of input size
    account         text   NOT NULL DEFAULT '',                        -- of several at the provider; empty: its only one
    cache_write_12h bigint NOT NULL DEFAULT 0,
    calls           bigint NOT NULL DEFAULT 0,                         -- of tools that the provider runs
    PRIMARY KEY (key, hour, slug, target, tier, place, context_band, account)
) WITH (fillfactor = 70);
CREATE INDEX usage_by_hour ON usage (hour);

CREATE TABLE audit (
    customer  bigint NOT NULL,
    seq       bigint NOT NULL CHECK (seq >= 0),
    position  bigint NOT NULL UNIQUE CHECK (position > 0),
    operation bytea  NOT NULL UNIQUE CHECK (octet_length(operation) = 16),
    act       text   NOT NULL,
    actor     text   NOT NULL,
    at        bigint NOT NULL,
    details   text   NOT NULL,
    state     text   NOT NULL,                                         -- the key after the act, JSON
    format    bigint NOT NULL CHECK (format BETWEEN 1 AND 3),
    hash      bytea  NOT NULL CHECK (octet_length(hash) = 32),
    key       bigint CHECK (key >= -1),
    PRIMARY KEY (customer, seq)
);

CREATE TABLE sessions (
    token   bytea  PRIMARY KEY CHECK (octet_length(token) = 32),
    key     bigint NOT NULL,
    at      bigint NOT NULL,
    expires bigint NOT NULL
);
CREATE INDEX sessions_by_key ON sessions (key);
CREATE INDEX sessions_by_end ON sessions (expires);

CREATE TABLE links (
    token   bytea  PRIMARY KEY CHECK (octet_length(token) = 32),
    key     bigint NOT NULL,
    expires bigint NOT NULL
);
CREATE INDEX links_by_key ON links (key);
CREATE INDEX links_by_end ON links (expires);

CREATE TABLE slugs (
    slug         text   PRIMARY KEY,
    published_at bigint NOT NULL
);

-- The gateways. An epoch is one run of one gateway; renewals grows every second while it runs.
CREATE TABLE nodes (
    epoch      bigint      PRIMARY KEY CHECK (epoch > 0),
    name       text        NOT NULL,
    version    text        NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    renewed_at timestamptz NOT NULL DEFAULT now(),
    renewals   bigint      NOT NULL DEFAULT 0,
    ended      timestamptz,                                            -- from here on it writes nothing, and others end its holds
    configuration text     NOT NULL DEFAULT '',                        -- hashes of its catalog and routes
    holds      bigint      NOT NULL DEFAULT 0,                         -- open at its last renewal
    per_second bigint      NOT NULL DEFAULT 0                          -- requests that began in the second before it
) WITH (fillfactor = 50);

-- What requests cost that had been ended by recovery when their bill arrived: never charged, the operator's exposure.
CREATE TABLE late_bills (
    request bytea  PRIMARY KEY CHECK (octet_length(request) = 16),
    at      bigint NOT NULL,
    epoch   bigint NOT NULL,
    cost    bigint NOT NULL,
    bill    text   NOT NULL
);

-- What an operator has accepted as lost, after the database had gone back in time: each acceptance raises identity.generation.
CREATE TABLE losses (
    generation bigint PRIMARY KEY CHECK (generation > 1),
    at         bigint NOT NULL,
    actor      text   NOT NULL,
    details    text   NOT NULL                                         -- JSON list of what a gateway knew and was not there
);

CREATE TABLE votes (
    target   text   NOT NULL,                                          -- provider/model
    question bigint NOT NULL,                                          -- pace, count
    day      bigint NOT NULL,                                          -- since 1970, UTC
    key      bigint NOT NULL,
    value    bigint NOT NULL CHECK (value >= 0),
    PRIMARY KEY (target, question, day, key)
);

-- What gateways' own requests to targets in trouble cost the operator, and who of them asks.

CREATE TABLE own_costs (
    hour   bigint NOT NULL,                                            -- since 1970, UTC
    target text   NOT NULL,                                            -- provider/model
    epoch  bigint NOT NULL,                                            -- of the gateway that asked: each stores its own total
    cost   bigint NOT NULL CHECK (cost >= 0),
    PRIMARY KEY (hour, target, epoch)
);

CREATE TABLE probe_leases (
    place    text        PRIMARY KEY,                                  -- a target, in the gateways' words
    epoch    bigint      NOT NULL,                                     -- of the gateway that asks
    asked_at timestamptz NOT NULL,                                     -- its latest request
    told_at  timestamptz,                                              -- when it told what it had found
    told_of  timestamptz,                                              -- which request that was
    found    text        NOT NULL DEFAULT ''                           -- in the gateways' words
);

-- Every configuration that a gateway put into force, with what it changed.
CREATE TABLE files_acts (
    operation bytea  PRIMARY KEY CHECK (length(operation) = 16),
    at        bigint NOT NULL,
    actor     text   NOT NULL,
    details   text   NOT NULL
);

-- Only of payments that came with particulars, or of which something went back. Amounts in a payment's currency are ten-thousandths.
CREATE TABLE payments (
    folded     text   PRIMARY KEY,                                         -- the reference, as it is compared
    reference  text   NOT NULL,
    customer   bigint NOT NULL,
    currency   text   NOT NULL CHECK (length(currency) = 3),
    gross      bigint NOT NULL CHECK (gross > 0),
    tax        bigint NOT NULL CHECK (tax >= 0 AND tax < gross),
    credit     bigint NOT NULL CHECK (credit > 0),
    refunded   bigint NOT NULL CHECK (refunded >= 0),                      -- the three registers: the most that was ever told
    withdrawn  bigint NOT NULL CHECK (withdrawn >= 0),
    reinstated bigint NOT NULL CHECK (reinstated >= 0),
    status     bigint NOT NULL CHECK (status BETWEEN 1 AND 3),             -- booked, unapplied, returned
    why        text,                                                       -- why it is unapplied
    actor      text   NOT NULL,
    at         bigint NOT NULL,
    token      bigint CHECK (token >= 0),                                  -- that booked it; NULL if it was booked here
    CHECK ((status = 2) = (why IS NOT NULL))
);
CREATE INDEX payments_by_customer ON payments (customer);
CREATE INDEX payments_unapplied ON payments (at) WHERE status = 2;

-- Tokens of the admin API.
CREATE TABLE tokens (
    id         bigint PRIMARY KEY CHECK (id >= 0),
    label      text   NOT NULL UNIQUE,                                     -- the actor of what it does
    role       bigint NOT NULL CHECK (role BETWEEN 1 AND 3),               -- read, sell, manage
    daily      bigint CHECK (daily > 0),                                   -- the most that it may credit in a UTC day
    expires_at bigint,
    revoked    bigint NOT NULL CHECK (revoked BETWEEN 0 AND 1),
    secret     bytea  NOT NULL UNIQUE CHECK (octet_length(secret) = 32),
    sold_on    bigint,                                                     -- the last day on which it credited anything
    sold       bigint CHECK (sold >= 0 AND sold <= daily),                 -- and how much then
    created_at bigint NOT NULL,
    created_by text   NOT NULL,
    CHECK (role <> 2 OR daily IS NOT NULL),
    CHECK ((sold IS NULL) = (sold_on IS NULL))
);

-- What requests with an idempotency key were answered, for a day.
CREATE TABLE answers (
    id        bytea  PRIMARY KEY CHECK (octet_length(id) = 32),            -- hash of token, path and key
    token     bigint,
    at        bigint NOT NULL,
    operation bytea  CHECK (octet_length(operation) = 16),
    body      bytea  NOT NULL CHECK (octet_length(body) = 32),             -- hash of the request's body
    status    bigint NOT NULL,
    answer    text   NOT NULL                                              -- without secrets
);
CREATE INDEX answers_by_age ON answers (at);

-- What sellers' programs hear about, and whom it is delivered to.
-- In the order of transactions: whoever has seen all that were older than every open one has missed none.
CREATE TABLE events (
    xid      xid8   NOT NULL DEFAULT pg_current_xact_id(),
    position bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY,
    id       bytea  PRIMARY KEY CHECK (length(id) = 16),
    kind     text   NOT NULL,
    at       bigint NOT NULL,
    customer bigint,                                                               -- NULL of what concerns all
    seq      bigint,
    data     text   NOT NULL,                                                      -- JSON
    CHECK ((customer IS NULL) = (seq IS NULL))
);
CREATE INDEX events_in_order ON events (xid, position);

CREATE TABLE webhooks (
    id       bigint PRIMARY KEY,                                                   -- follows from its address
    url      text   NOT NULL UNIQUE,
    since    bigint NOT NULL,
    handed   bytea  CHECK (length(handed) = 16),                                   -- the newest event that has rows of delivery
    disabled bigint,                                                               -- when, and why
    why      text,
    CHECK ((disabled IS NULL) = (why IS NULL))
);

CREATE TABLE deliveries (
    event    bytea  NOT NULL CHECK (length(event) = 16),
    webhook  bigint NOT NULL,
    status   bigint NOT NULL CHECK (status BETWEEN 1 AND 3),                       -- waiting, delivered, given up
    tries    bigint NOT NULL CHECK (tries >= 0),
    due      bigint NOT NULL,
    leased   bigint NOT NULL DEFAULT 0,                                            -- a gateway tries it until then
    why      text,                                                                 -- what became of the last try
    PRIMARY KEY (event, webhook)
);
CREATE INDEX deliveries_due ON deliveries (webhook, due) WHERE status = 1;

-- Codes that are worth credit once, in lots.
CREATE TABLE lots (
    id         bigint PRIMARY KEY CHECK (id >= 0),
    count      bigint NOT NULL CHECK (count > 0),
    amount     bigint NOT NULL CHECK (amount > 0),                         -- what each is worth
    expires_at bigint,
    once       bigint NOT NULL CHECK (once BETWEEN 0 AND 1),               -- a customer can redeem only one of them
    void       bigint NOT NULL CHECK (void BETWEEN 0 AND 1),               -- what is left is worth nothing
    redeemed   bigint NOT NULL CHECK (redeemed BETWEEN 0 AND count),
    created_at bigint NOT NULL,
    created_by text NOT NULL,
    operation  bytea NOT NULL CHECK (octet_length(operation) = 16)                 -- that made it
);
CREATE TABLE vouchers (
    code      bytea PRIMARY KEY CHECK (octet_length(code) = 32),                   -- hash of the code
    lot       bigint NOT NULL,
    number    bigint NOT NULL CHECK (number > 0),                          -- in its lot
    customer  bigint,                                                      -- who redeemed it
    operation bytea CHECK (octet_length(operation) = 16),                          -- of the entry
    CHECK ((customer IS NULL) = (operation IS NULL)),
    UNIQUE (lot, number)
);
CREATE INDEX vouchers_redeemed ON vouchers (lot, customer) WHERE customer IS NOT NULL;

-- Acts on tokens and on lots of vouchers, which belong to no customer: one chain.
CREATE TABLE token_acts (
    seq       bigint PRIMARY KEY CHECK (seq > 0),
    at        bigint NOT NULL,
    actor     text   NOT NULL,
    act       text   NOT NULL,
    token     bigint,
    operation bytea  NOT NULL UNIQUE CHECK (octet_length(operation) = 16),
    details   text   NOT NULL,                                             -- JSON, without secrets
    state     text   NOT NULL,                                             -- JSON: the token or lot after the act
    hash      bytea  NOT NULL CHECK (octet_length(hash) = 32),
    lot       bigint,
    CONSTRAINT house_acts_check CHECK ((token IS NULL) <> (lot IS NULL))
);
ALTER TABLE token_acts RENAME TO house_acts;

CREATE FUNCTION farebox_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
END $$;
CREATE TRIGGER entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON entries
    FOR EACH STATEMENT EXECUTE FUNCTION farebox_refuse();
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION farebox_refuse();
CREATE TRIGGER refs_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON refs
    FOR EACH STATEMENT EXECUTE FUNCTION farebox_refuse();
CREATE TRIGGER late_bills_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON late_bills
    FOR EACH STATEMENT EXECUTE FUNCTION farebox_refuse();
CREATE TRIGGER losses_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON losses
    FOR EACH STATEMENT EXECUTE FUNCTION farebox_refuse();
CREATE TRIGGER files_acts_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON files_acts
    FOR EACH STATEMENT EXECUTE FUNCTION farebox_refuse();
CREATE TRIGGER house_acts_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON house_acts
    FOR EACH STATEMENT EXECUTE FUNCTION farebox_refuse();
CREATE TRIGGER keys_stay BEFORE DELETE OR TRUNCATE ON keys
    FOR EACH STATEMENT EXECUTE FUNCTION farebox_refuse();
CREATE TRIGGER accounts_stay BEFORE DELETE OR TRUNCATE ON accounts
    FOR EACH STATEMENT EXECUTE FUNCTION farebox_refuse();
CREATE TRIGGER identity_stays BEFORE DELETE OR TRUNCATE ON identity
    FOR EACH STATEMENT EXECUTE FUNCTION farebox_refuse();
