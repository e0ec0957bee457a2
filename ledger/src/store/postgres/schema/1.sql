-- The ledger's schema on PostgreSQL. The same facts as on SQLite: money is whole picodollars, times are milliseconds since 1970,
-- ids and hashes are raw bytes, and the CHECKs repeat the rules of account.rs. What differs: entries are numbered per key alone,
-- nothing is counted over all keys, and no row is written by every batch.

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
    audit_seq   bigint  NOT NULL CHECK (audit_seq >= 0),
    audit_last  bigint  NOT NULL,               -- position of the key's newest act
    audit_hash  bytea   NOT NULL CHECK (octet_length(audit_hash) = 32),
    CHECK ((old_secret IS NULL) = (old_until IS NULL))
);
CREATE INDEX keys_by_creation ON keys (created_at, id);

-- Half of each page stays free, so that an update finds room beside the row and touches no index.
CREATE TABLE accounts (
    id      bigint PRIMARY KEY,
    credit  bigint NOT NULL CHECK (credit >= 0 AND credit <= 9000000000000000000),
    spent   bigint NOT NULL CHECK (spent >= 0),
    held    bigint NOT NULL CHECK (held >= 0),
    seq     bigint NOT NULL CHECK (seq >= 0),                          -- of the key's newest entry
    last    bigint NOT NULL CHECK (last >= 0),                         -- position of the key's newest entry; 0 is none
    last_at bigint,
    hash    bytea  NOT NULL CHECK (octet_length(hash) = 32),
    opened  bigint NOT NULL CHECK (opened >= 0),                       -- holds ever opened: each is open or has ended in a charge
    CHECK (spent <= credit - held)
) WITH (fillfactor = 50);

-- Places of entries and acts, for display and paging: each transaction takes a block. They ascend within a key; among keys they
-- have gaps and no meaning.
CREATE SEQUENCE positions INCREMENT 2048;

CREATE TABLE entries (
    key            bigint  NOT NULL,
    seq            bigint  NOT NULL CHECK (seq > 0),
    position       bigint  NOT NULL CHECK (position > 0),
    operation      bytea   NOT NULL CHECK (octet_length(operation) = 16),
    kind           bigint  NOT NULL CHECK (kind BETWEEN 1 AND 4),      -- top_up, charge, refund, adjust
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
    evidence       bigint  CHECK (evidence BETWEEN 1 AND 4),           -- provider, local, disputed, recovered
    input          bigint,
    cache_read     bigint,
    cache_write    bigint,
    cache_write_1h bigint,
    output         bigint,
    reasoning      bigint,
    images         bigint,
    lines          text,                                               -- [["what", count, rate], …]
    facts          text,                                               -- {"name":"value", …}, sorted by name; NULL is none
    format         bigint  NOT NULL CHECK (format BETWEEN 1 AND 2),
    hash           bytea   NOT NULL CHECK (octet_length(hash) = 32),
    PRIMARY KEY (key, seq),
    CHECK ((kind = 2) = (slug IS NOT NULL)),
    CHECK ((kind = 2) = (reference IS NULL)),
    CHECK ((kind = 3) = (refunds IS NOT NULL)),
    CHECK (kind <> 2 OR amount <= 0),
    CHECK (kind NOT IN (1, 3) OR amount > 0)
);
CREATE UNIQUE INDEX entries_by_operation ON entries (operation);
CREATE UNIQUE INDEX entries_by_position ON entries (position);
CREATE INDEX entries_by_refund ON entries (refunds) WHERE refunds IS NOT NULL;

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
    checkpoint text                                                    -- the bill so far, JSON
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
    PRIMARY KEY (key, hour, slug, target)
) WITH (fillfactor = 70);
CREATE INDEX usage_by_hour ON usage (hour);

CREATE TABLE audit (
    key       bigint NOT NULL,
    seq       bigint NOT NULL CHECK (seq >= 0),
    position  bigint NOT NULL UNIQUE CHECK (position > 0),
    operation bytea  NOT NULL UNIQUE CHECK (octet_length(operation) = 16),
    act       text   NOT NULL,
    actor     text   NOT NULL,
    at        bigint NOT NULL,
    details   text   NOT NULL,
    state     text   NOT NULL,                                         -- the key after the act, JSON
    format    bigint NOT NULL CHECK (format BETWEEN 1 AND 2),
    hash      bytea  NOT NULL CHECK (octet_length(hash) = 32),
    PRIMARY KEY (key, seq)
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
    ended      timestamptz                                             -- from here on it writes nothing, and others end its holds
) WITH (fillfactor = 50);

-- What requests cost that had been ended by recovery when their bill arrived: never charged, the operator's exposure.
CREATE TABLE late_bills (
    request bytea  PRIMARY KEY CHECK (octet_length(request) = 16),
    at      bigint NOT NULL,
    epoch   bigint NOT NULL,
    cost    bigint NOT NULL,
    bill    text   NOT NULL
);

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
CREATE TRIGGER keys_stay BEFORE DELETE OR TRUNCATE ON keys
    FOR EACH STATEMENT EXECUTE FUNCTION farebox_refuse();
CREATE TRIGGER accounts_stay BEFORE DELETE OR TRUNCATE ON accounts
    FOR EACH STATEMENT EXECUTE FUNCTION farebox_refuse();
CREATE TRIGGER identity_stays BEFORE DELETE OR TRUNCATE ON identity
    FOR EACH STATEMENT EXECUTE FUNCTION farebox_refuse();
