-- The fifth schema: votes on targets, a fifth kind of evidence, and references that are compared in NFKC. migrations.rs registers the
-- references anew.

CREATE TABLE votes (
    target   TEXT    NOT NULL,              -- provider/model
    question INTEGER NOT NULL,              -- pace, count
    day      INTEGER NOT NULL,              -- since 1970, UTC
    key      INTEGER NOT NULL,
    value    INTEGER NOT NULL CHECK (value >= 0),
    PRIMARY KEY (target, question, day, key)
) STRICT, WITHOUT ROWID;

-- A wider CHECK holds for every row that the narrower one let in, so its text is changed and the journal is not copied.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql,
        'CHECK (evidence BETWEEN 1 AND 4),        -- provider, local, disputed, recovered',
        'CHECK (evidence BETWEEN 1 AND 5),        -- provider, local, disputed, recovered, learned')
    WHERE type = 'table' AND name = 'entries';
PRAGMA writable_schema = RESET;

DROP TRIGGER refs_no_update;
DROP TRIGGER refs_no_delete;
DELETE FROM refs;
CREATE TRIGGER refs_no_update BEFORE UPDATE ON refs BEGIN SELECT raise(ABORT, 'references are taken for ever'); END;
CREATE TRIGGER refs_no_delete BEFORE DELETE ON refs BEGIN SELECT raise(ABORT, 'references are taken for ever'); END;
