-- Tokens of the admin API, what they made, and the answers that repetitions get.
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

-- One chain for all tokens, which belong to no customer.
CREATE TABLE token_acts (
    seq       bigint PRIMARY KEY CHECK (seq > 0),
    at        bigint NOT NULL,
    actor     text   NOT NULL,
    act       text   NOT NULL,
    token     bigint NOT NULL,
    operation bytea  NOT NULL UNIQUE CHECK (octet_length(operation) = 16),
    details   text   NOT NULL,                                             -- JSON, without secrets
    state     text   NOT NULL,                                             -- JSON: the token after the act
    hash      bytea  NOT NULL CHECK (octet_length(hash) = 32)
);
CREATE TRIGGER token_acts_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON token_acts
    FOR EACH STATEMENT EXECUTE FUNCTION farebox_refuse();

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

-- The token that made it; NULL if it was made here.
ALTER TABLE accounts ADD COLUMN token bigint CHECK (token >= 0);
ALTER TABLE keys ADD COLUMN token bigint CHECK (token >= 0);
ALTER TABLE payments ADD COLUMN token bigint CHECK (token >= 0);
