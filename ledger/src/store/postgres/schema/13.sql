-- Acts that belong to no customer are on tokens and on lots of vouchers, in one chain. migrations.rs adds one for each lot that is there.
DROP TRIGGER token_acts_append_only ON token_acts;
ALTER TABLE token_acts RENAME TO house_acts;
ALTER TABLE house_acts
    ALTER COLUMN token DROP NOT NULL,
    ADD COLUMN lot bigint,
    ADD CHECK ((token IS NULL) <> (lot IS NULL));
CREATE TRIGGER house_acts_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON house_acts
    FOR EACH STATEMENT EXECUTE FUNCTION farebox_refuse();
