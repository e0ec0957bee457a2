-- The second schema: which ledger this is, and which references are taken. migrations.rs fills both tables.

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

-- Each reference once, as references are compared (reference.rs). entries.reference keeps the spelling.
CREATE TABLE refs (
    folded    TEXT NOT NULL PRIMARY KEY,
    operation BLOB NOT NULL UNIQUE CHECK (length(operation) = 16)   -- of the entry that has it
) STRICT;
CREATE TRIGGER refs_no_update BEFORE UPDATE ON refs BEGIN SELECT raise(ABORT, 'references are taken for ever'); END;
CREATE TRIGGER refs_no_delete BEFORE DELETE ON refs BEGIN SELECT raise(ABORT, 'references are taken for ever'); END;
-- A program from before this schema may still have the file open, and knows nothing of refs. Its credits are stopped here. The
-- check is on the audit, which every credit writes after its entry, so that charges do not pay for it.
CREATE TRIGGER audit_needs_reference BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM entries WHERE operation = new.operation AND reference IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM refs WHERE operation = new.operation)
BEGIN SELECT raise(ABORT, 'this program is older than the ledger: its reference was not registered'); END;
