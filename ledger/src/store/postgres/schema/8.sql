-- Customers own the money, and keys spend it. A row of accounts is a customer. The upgrade makes each key the only key of a customer
-- with the same number, so that its rows, chains and anchors stay valid.
ALTER TABLE accounts
    ADD COLUMN label       text   NOT NULL DEFAULT '',
    ADD COLUMN external_id text,
    ADD COLUMN price_list  text,
    ADD COLUMN low_balance bigint CHECK (low_balance >= 0),
    ADD COLUMN rate        bigint CHECK (rate >= 0),
    ADD COLUMN concurrency bigint CHECK (concurrency >= 0),
    ADD COLUMN status      bigint NOT NULL DEFAULT 1 CHECK (status BETWEEN 1 AND 3),   -- active, suspended, closed
    ADD COLUMN caps        text,                                           -- JSON list of caps and the counts of their windows; NULL is none
    ADD COLUMN personal    bytea  CHECK (octet_length(personal) = 32),     -- hash of its personal data; NULL is none
    ADD COLUMN created_at  bigint NOT NULL DEFAULT 0,
    ADD COLUMN created_by  text   NOT NULL DEFAULT '',
    ADD COLUMN audit_seq   bigint NOT NULL DEFAULT 0 CHECK (audit_seq >= 0),
    ADD COLUMN audit_last  bigint NOT NULL DEFAULT 0,                      -- position of its newest act
    ADD COLUMN audit_hash  bytea  NOT NULL DEFAULT decode(repeat('00', 32), 'hex') CHECK (octet_length(audit_hash) = 32);
UPDATE accounts SET label = k.label, created_at = k.created_at, created_by = k.created_by, audit_seq = k.audit_seq,
        audit_last = k.audit_last, audit_hash = k.audit_hash
    FROM keys k WHERE k.id = accounts.id;
CREATE UNIQUE INDEX accounts_by_external_id ON accounts (external_id) WHERE external_id IS NOT NULL;
CREATE INDEX accounts_by_creation ON accounts (created_at, id);

ALTER TABLE keys
    ADD COLUMN customer bigint NOT NULL DEFAULT 0 CHECK (customer >= 0),
    ADD COLUMN owner    bigint NOT NULL DEFAULT 0 CHECK (owner BETWEEN 0 AND 1),       -- of its customer's keys
    ADD COLUMN made_by  bigint CHECK (made_by >= 0),                       -- the owner key that made it
    ADD COLUMN running  bigint CHECK (running >= 0),                       -- open holds; NULL: it has no limits of its own
    ADD COLUMN paced_to bigint;                                            -- as in accounts
UPDATE keys SET customer = id;
UPDATE keys SET running = a.running, paced_to = a.paced_to FROM accounts a
    WHERE a.id = keys.id AND (keys.rate IS NOT NULL OR keys.concurrency IS NOT NULL);
ALTER TABLE keys DROP COLUMN audit_seq, DROP COLUMN audit_last, DROP COLUMN audit_hash;
CREATE INDEX keys_by_customer ON keys (customer, created_at, id);

-- What used to be the key's is the customer's. The key of an entry or act is NULL where it has the customer's number, and -1 if there
-- is none.
ALTER TABLE entries RENAME COLUMN key TO customer;
ALTER TABLE entries ADD COLUMN key bigint CHECK (key >= -1);
CREATE INDEX entries_by_key ON entries (key, seq) WHERE key IS NOT NULL;
ALTER TABLE audit RENAME COLUMN key TO customer;
ALTER TABLE audit ADD COLUMN key bigint CHECK (key >= -1);

ALTER TABLE entries
    DROP CONSTRAINT entries_kind_check,
    ADD CONSTRAINT entries_kind_check CHECK (kind BETWEEN 1 AND 10),       -- …, grant, expired, void, reversal, move, write_off
    DROP CONSTRAINT entries_format_check,
    ADD CONSTRAINT entries_format_check CHECK (format BETWEEN 1 AND 3),
    DROP CONSTRAINT entries_check1,
    ADD CONSTRAINT entries_reference_check CHECK (kind <> 2 OR reference IS NULL);
ALTER TABLE audit
    DROP CONSTRAINT audit_format_check,
    ADD CONSTRAINT audit_format_check CHECK (format BETWEEN 1 AND 3);

-- Name, address and metadata of customers. Nothing that is chained contains them.
CREATE TABLE personal_data (
    customer bigint PRIMARY KEY,
    data     text   NOT NULL                                               -- JSON, with the salt of its hash
);
