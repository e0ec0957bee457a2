-- What an operator has accepted as lost, after the database had gone back in time: each acceptance raises identity.generation.
CREATE TABLE losses (
    generation bigint PRIMARY KEY CHECK (generation > 1),
    at         bigint NOT NULL,
    actor      text   NOT NULL,
    details    text   NOT NULL                                         -- JSON list of what a gateway knew and was not there
);
CREATE TRIGGER losses_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON losses
    FOR EACH STATEMENT EXECUTE FUNCTION farebox_refuse();
