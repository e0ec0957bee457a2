-- The seventh schema: every configuration that a gateway put into force, with what it changed.

CREATE TABLE files_acts (
    operation BLOB    PRIMARY KEY CHECK (length(operation) = 16),
    at        INTEGER NOT NULL,
    actor     TEXT    NOT NULL,
    details   TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TRIGGER files_acts_no_update BEFORE UPDATE ON files_acts BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER files_acts_no_delete BEFORE DELETE ON files_acts BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
