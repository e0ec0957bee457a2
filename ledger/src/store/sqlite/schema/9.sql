-- The ninth schema: customers own the money, and keys spend it. A row of accounts is a customer. The upgrade makes each key the only
-- key of a customer with the same number, so that its rows, chains and anchors stay valid.

ALTER TABLE accounts ADD COLUMN label       TEXT    NOT NULL DEFAULT '';
ALTER TABLE accounts ADD COLUMN external_id TEXT;
ALTER TABLE accounts ADD COLUMN price_list  TEXT;
ALTER TABLE accounts ADD COLUMN low_balance INTEGER CHECK (low_balance >= 0);
ALTER TABLE accounts ADD COLUMN rate        INTEGER CHECK (rate >= 0);
ALTER TABLE accounts ADD COLUMN concurrency INTEGER CHECK (concurrency >= 0);
ALTER TABLE accounts ADD COLUMN status      INTEGER NOT NULL DEFAULT 1 CHECK (status BETWEEN 1 AND 3);   -- active, suspended, closed
ALTER TABLE accounts ADD COLUMN caps        TEXT;                      -- JSON list of caps and the counts of their windows; NULL is none
ALTER TABLE accounts ADD COLUMN personal    BLOB    CHECK (length(personal) = 32);      -- hash of its personal data; NULL is none
ALTER TABLE accounts ADD COLUMN created_at  INTEGER NOT NULL DEFAULT 0;
ALTER TABLE accounts ADD COLUMN created_by  TEXT    NOT NULL DEFAULT '';
ALTER TABLE accounts ADD COLUMN audit_seq   INTEGER NOT NULL DEFAULT 0 CHECK (audit_seq >= 0);
ALTER TABLE accounts ADD COLUMN audit_last  INTEGER NOT NULL DEFAULT 0;                 -- position of its newest audit record
ALTER TABLE accounts ADD COLUMN audit_hash  BLOB    NOT NULL CHECK (length(audit_hash) = 32)
    DEFAULT x'0000000000000000000000000000000000000000000000000000000000000000';
UPDATE accounts SET label = k.label, created_at = k.created_at, created_by = k.created_by, audit_seq = k.audit_seq,
        audit_last = k.audit_last, audit_hash = k.audit_hash
    FROM keys k WHERE k.id = accounts.id;
CREATE UNIQUE INDEX accounts_by_external_id ON accounts (external_id) WHERE external_id IS NOT NULL;
CREATE INDEX accounts_by_creation ON accounts (created_at, id);

ALTER TABLE keys ADD COLUMN customer INTEGER NOT NULL DEFAULT 0 CHECK (customer >= 0);
ALTER TABLE keys ADD COLUMN owner    INTEGER NOT NULL DEFAULT 0 CHECK (owner BETWEEN 0 AND 1);   -- of its customer's keys
ALTER TABLE keys ADD COLUMN made_by  INTEGER CHECK (made_by >= 0);                               -- the owner key that made it
UPDATE keys SET customer = id;
ALTER TABLE keys DROP COLUMN audit_seq;
ALTER TABLE keys DROP COLUMN audit_last;
ALTER TABLE keys DROP COLUMN audit_hash;
CREATE INDEX keys_by_customer ON keys (customer, created_at, id);

-- What used to be the key's is the customer's. The key of an entry or act is NULL where it has the customer's number, and -1 if there
-- is none.
ALTER TABLE entries RENAME COLUMN key TO customer;
ALTER TABLE entries ADD COLUMN key INTEGER CHECK (key >= -1);
DROP TRIGGER audit_no_update;
ALTER TABLE audit RENAME COLUMN key TO customer;
ALTER TABLE audit ADD COLUMN key INTEGER CHECK (key >= -1);
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;

-- The two entries of a move share a reference, which is registered for the one that gives.
DROP INDEX entries_by_reference;
CREATE INDEX entries_by_reference ON entries (reference) WHERE reference IS NOT NULL;
DROP TRIGGER audit_needs_reference;
CREATE TRIGGER audit_needs_reference BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM entries WHERE operation = new.operation AND reference IS NOT NULL AND kind <> 9)
    AND NOT EXISTS (SELECT 1 FROM refs WHERE operation = new.operation)
BEGIN SELECT raise(ABORT, 'this program is older than the ledger: its reference was not registered'); END;

-- Name, address and metadata of customers. Nothing that is chained contains them.
CREATE TABLE personal_data (
    customer INTEGER PRIMARY KEY REFERENCES accounts (id),
    data     TEXT    NOT NULL                                           -- JSON, with the salt of its hash
) STRICT;

-- Wider CHECKs hold for every row that the narrower ones let in, and references to other tables for every number that both have, so
-- their text is changed and no table is copied.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'INTEGER PRIMARY KEY REFERENCES keys (id)', 'INTEGER PRIMARY KEY')
    WHERE type = 'table' AND name = 'accounts';
UPDATE sqlite_schema SET sql = replace(sql, 'INTEGER NOT NULL REFERENCES accounts (id)', 'INTEGER NOT NULL REFERENCES keys (id)')
    WHERE type = 'table' AND name = 'holds';
UPDATE sqlite_schema SET sql = replace(replace(sql, 'INTEGER NOT NULL REFERENCES keys (id)', 'INTEGER NOT NULL REFERENCES accounts (id)'),
        'CHECK (format BETWEEN 1 AND 2)', 'CHECK (format BETWEEN 1 AND 3)')
    WHERE type = 'table' AND name = 'audit';
UPDATE sqlite_schema SET sql = replace(replace(replace(sql,
        'CHECK (kind BETWEEN 1 AND 4),   -- top_up, charge, refund, adjust',
        'CHECK (kind BETWEEN 1 AND 10),  -- top_up, charge, refund, adjust, grant, expired, void, reversal, move, write_off'),
        'CHECK ((kind = 2) = (reference IS NULL))', 'CHECK (kind <> 2 OR reference IS NULL)'),
        'CHECK (format BETWEEN 1 AND 2)', 'CHECK (format BETWEEN 1 AND 3)')
    WHERE type = 'table' AND name = 'entries';
PRAGMA writable_schema = RESET;
