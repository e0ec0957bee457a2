-- Plans. A period is a grant; what carries over may make it larger than what was given. SQLite changes no CHECK, and a table of all
-- entries is not copied for one that becomes wider: its text is replaced, which its own documentation allows for that.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'kind BETWEEN 1 AND 10)', 'kind BETWEEN 1 AND 11)') WHERE type = 'table' AND name = 'entries';
UPDATE sqlite_schema SET sql = replace(sql, 'kind BETWEEN 1 AND 2)', 'kind BETWEEN 1 AND 3)') WHERE type = 'table' AND name IN ('grants', 'lots');
UPDATE sqlite_schema SET sql = replace(sql, 'remaining BETWEEN 0 AND amount)', 'remaining >= 0 AND (kind = 3 OR remaining <= amount))')
    WHERE type = 'table' AND name = 'grants';
PRAGMA writable_schema = RESET;

-- What acts have made of a customer's subscription to a plan.
CREATE TABLE subscriptions (
    id       INTEGER PRIMARY KEY CHECK (id >= 0),
    customer INTEGER NOT NULL REFERENCES accounts (id),
    open     INTEGER NOT NULL CHECK (open BETWEEN 0 AND 1),             -- something can still come of it
    state    TEXT    NOT NULL,                                          -- JSON: terms, status, anchor, what is sold and runs
    moved    INTEGER NOT NULL CHECK (moved >= 0),                       -- of the period before the running one, into it or into credit
    told     INTEGER NOT NULL CHECK (told BETWEEN 0 AND 100)            -- per cent of the running allowance that were told
) STRICT;
CREATE INDEX subscriptions_of_customer ON subscriptions (customer) WHERE open = 1;
CREATE TRIGGER subscriptions_no_delete BEFORE DELETE ON subscriptions BEGIN SELECT raise(ABORT, 'subscriptions are never deleted'); END;

-- What was used of a plan in a window, as long as anything is counted in it.
CREATE TABLE plan_windows (
    id       INTEGER PRIMARY KEY CHECK (id >= 0),
    customer INTEGER NOT NULL REFERENCES accounts (id),
    place    TEXT    NOT NULL,                                          -- JSON: the plan's name, and how long it counts
    begins   INTEGER NOT NULL,
    ends     INTEGER NOT NULL CHECK (ends > begins),
    bound    INTEGER NOT NULL CHECK (bound > 0),
    charged  INTEGER NOT NULL CHECK (charged >= 0),
    held     INTEGER NOT NULL CHECK (held >= 0),
    told     INTEGER NOT NULL CHECK (told BETWEEN 0 AND 100),           -- per cent of the bound that were told
    CHECK (charged + held <= bound)
) STRICT;
CREATE INDEX plan_windows_of_customer ON plan_windows (customer);

ALTER TABLE payments ADD COLUMN plan TEXT;                              -- JSON: the periods that it bought, and what went back of them
ALTER TABLE lots ADD COLUMN plan TEXT;                                  -- JSON: the terms of the period that a voucher gives
