-- Votes on targets, a fifth kind of evidence, and references that are compared in NFKC: migrations.rs folds them anew.

CREATE TABLE votes (
    target   text   NOT NULL,                                          -- provider/model
    question bigint NOT NULL,                                          -- pace, count
    day      bigint NOT NULL,                                          -- since 1970, UTC
    key      bigint NOT NULL,
    value    bigint NOT NULL CHECK (value >= 0),
    PRIMARY KEY (target, question, day, key)
);

ALTER TABLE entries DROP CONSTRAINT entries_evidence_check;
ALTER TABLE entries ADD CONSTRAINT entries_evidence_check CHECK (evidence BETWEEN 1 AND 5);    -- the fifth is learned
