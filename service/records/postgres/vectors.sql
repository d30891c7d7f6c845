-- Vectors of texts; see vectors.sql of the file. Triggers fill in the connection of each row.
-- Records that have vectors are counted when asked: a counter would make imports wait.

CREATE TABLE vector_set (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  model text COLLATE "C" NOT NULL UNIQUE,
  dimensions integer NOT NULL,
  centre bytea NOT NULL,
  complete integer NOT NULL DEFAULT 0,
  version bigint NOT NULL DEFAULT 0
);
CREATE TABLE vector_stream (
  set_id integer NOT NULL,
  stream integer NOT NULL REFERENCES stream ON DELETE CASCADE,
  fields text NOT NULL,
  PRIMARY KEY (set_id, stream)
);
CREATE TABLE vectored (
  seq bigint NOT NULL REFERENCES document ON DELETE CASCADE,
  set_id integer NOT NULL,
  stream integer NOT NULL,
  conn integer NOT NULL,
  whole integer NOT NULL,
  PRIMARY KEY (seq, set_id)
);
CREATE INDEX vectored_stream ON vectored (set_id, stream);
CREATE TABLE vector (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  set_id integer NOT NULL,
  seq bigint NOT NULL REFERENCES document ON DELETE CASCADE,
  ordinal integer NOT NULL,
  conn integer NOT NULL,
  start integer NOT NULL,
  stop integer NOT NULL,
  hash bigint NOT NULL,
  lot bigint NOT NULL,
  block bigint,
  slot integer,
  vector bytea NOT NULL,
  UNIQUE (seq, set_id, ordinal, start)
);
ALTER TABLE vector ALTER vector SET STORAGE EXTERNAL;
CREATE INDEX vector_hash ON vector (set_id, hash);
CREATE INDEX vector_lot ON vector (set_id, ordinal, lot) WHERE start = 0;
CREATE INDEX vector_loose ON vector (set_id, ordinal) WHERE block IS NULL;
CREATE TABLE vector_block (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  set_id integer NOT NULL,
  ordinal integer NOT NULL,
  conn integer NOT NULL,
  width integer NOT NULL,
  gone integer NOT NULL DEFAULT 0,
  entries bytea NOT NULL
);
ALTER TABLE vector_block ALTER entries SET STORAGE EXTERNAL;
CREATE INDEX vector_block_field ON vector_block (set_id, ordinal);

CREATE FUNCTION vector_conn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_TABLE_NAME = 'vector_block' THEN
    SELECT conn INTO new.conn FROM scope WHERE ordinal = new.ordinal;
  ELSE
    SELECT conn INTO new.conn FROM record WHERE seq = new.seq;
  END IF;
  RETURN new;
END $$;
CREATE FUNCTION vector_gone() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  UPDATE vector_block SET gone = gone + 1, entries = overlay(
    entries PLACING decode(repeat('00', width), 'hex') FROM old.slot * width + 1)
  WHERE id = old.block;
  RETURN NULL;
END $$;
DO $$
DECLARE
  one text;
BEGIN
  FOREACH one IN ARRAY '{vector, vectored, vector_block}'::text[] LOOP
    EXECUTE format('CREATE TRIGGER vector_conn BEFORE INSERT ON %I FOR EACH ROW'
      ' EXECUTE FUNCTION vector_conn()', one);
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', one);
    EXECUTE format('CREATE POLICY seen ON %I FOR SELECT USING (%s)', one,
      'conn = ANY ((SELECT rung_conns())::integer[])');
    EXECUTE format('CREATE POLICY written ON %I USING (%s)', one,
      $p$(SELECT current_setting('rung.writes', true)) = 'on'$p$);
  END LOOP;
END $$;
CREATE TRIGGER vector_gone AFTER DELETE ON vector FOR EACH ROW WHEN (old.block IS NOT NULL)
  EXECUTE FUNCTION vector_gone();
