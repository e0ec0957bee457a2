-- Every configuration that a gateway put into force, with what it changed.

CREATE TABLE files_acts (
    operation bytea  PRIMARY KEY CHECK (length(operation) = 16),
    at        bigint NOT NULL,
    actor     text   NOT NULL,
    details   text   NOT NULL
);
CREATE TRIGGER files_acts_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON files_acts
    FOR EACH STATEMENT EXECUTE FUNCTION farebox_refuse();
