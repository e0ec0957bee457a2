-- Plans. A period is a grant; what carries over may make it larger than what was given.
ALTER TABLE entries DROP CONSTRAINT entries_kind_check;
ALTER TABLE entries ADD CONSTRAINT entries_kind_check CHECK (kind BETWEEN 1 AND 11);
ALTER TABLE grants DROP CONSTRAINT grants_kind_check;
ALTER TABLE grants ADD CONSTRAINT grants_kind_check CHECK (kind BETWEEN 1 AND 3);
ALTER TABLE grants DROP CONSTRAINT grants_check1;
ALTER TABLE grants ADD CONSTRAINT grants_check1 CHECK (remaining >= 0 AND (kind = 3 OR remaining <= amount));
ALTER TABLE lots DROP CONSTRAINT lots_kind_check;
ALTER TABLE lots ADD CONSTRAINT lots_kind_check CHECK (kind BETWEEN 1 AND 3);

-- What acts have made of a customer's subscription to a plan.
CREATE TABLE subscriptions (
    id       bigint PRIMARY KEY CHECK (id >= 0),
    customer bigint NOT NULL REFERENCES accounts (id),
    open     bigint NOT NULL CHECK (open BETWEEN 0 AND 1),              -- something can still come of it
    state    text   NOT NULL,                                           -- JSON: terms, status, anchor, what is sold and runs
    moved    bigint NOT NULL CHECK (moved >= 0),                        -- of the period before the running one, into it or into credit
    told     bigint NOT NULL CHECK (told BETWEEN 0 AND 100)             -- per cent of the running allowance that were told
);
CREATE INDEX subscriptions_of_customer ON subscriptions (customer) WHERE open = 1;
CREATE TRIGGER subscriptions_stay BEFORE DELETE OR TRUNCATE ON subscriptions
    FOR EACH STATEMENT EXECUTE FUNCTION farebox_refuse();

-- What was used of a plan in a window, as long as anything is counted in it.
CREATE TABLE plan_windows (
    id       bigint PRIMARY KEY CHECK (id >= 0),
    customer bigint NOT NULL REFERENCES accounts (id),
    place    text   NOT NULL,                                           -- JSON: the plan's name, and how long it counts
    begins   bigint NOT NULL,
    ends     bigint NOT NULL CHECK (ends > begins),
    bound    bigint NOT NULL CHECK (bound > 0),
    charged  bigint NOT NULL CHECK (charged >= 0),
    held     bigint NOT NULL CHECK (held >= 0),
    told     bigint NOT NULL CHECK (told BETWEEN 0 AND 100),            -- per cent of the bound that were told
    CHECK (charged + held <= bound)
);
CREATE INDEX plan_windows_of_customer ON plan_windows (customer);

ALTER TABLE payments ADD COLUMN plan text;                              -- JSON: the periods that it bought, and what went back of them
ALTER TABLE lots ADD COLUMN plan text;                                  -- JSON: the terms of the period that a voucher gives
