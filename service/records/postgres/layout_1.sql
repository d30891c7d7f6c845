-- Layout 1 of a store in PostgreSQL; ddl.py describes it. Sequences hand out numbers by the thousand.

CREATE TABLE meta (key text PRIMARY KEY, value text NOT NULL);
CREATE TABLE counter (
  generation bigint NOT NULL, catalog bigint NOT NULL, version bigint NOT NULL
);
INSERT INTO counter VALUES (1, 1, 0);
CREATE SEQUENCE record_seq INCREMENT 1000;
CREATE SEQUENCE value_seq INCREMENT 1000;

CREATE TABLE connection (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  connection_id text COLLATE "C" NOT NULL UNIQUE,
  connector_key text NOT NULL,
  display_name text,
  languages text NOT NULL DEFAULT '[]'
);
CREATE TABLE stream (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  conn integer NOT NULL REFERENCES connection(id),
  name text COLLATE "C" NOT NULL,
  manifest text NOT NULL,
  records bigint NOT NULL DEFAULT 0,
  UNIQUE (conn, name)
);
CREATE TABLE scope (
  ordinal integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  stream integer NOT NULL REFERENCES stream(id),
  conn integer NOT NULL,
  field text COLLATE "C" NOT NULL,
  searchable boolean NOT NULL DEFAULT false,
  words bigint NOT NULL DEFAULT 0,
  UNIQUE (stream, field)
);

CREATE TABLE record (
  seq bigint PRIMARY KEY,
  conn integer NOT NULL,
  stream integer NOT NULL,
  record_key text COLLATE "C" NOT NULL,
  at bigint,
  cursor bytea NOT NULL,
  thread bytea,
  place bytea,
  deleted boolean NOT NULL DEFAULT false,
  UNIQUE (stream, record_key)
);
CREATE INDEX record_at ON record (stream, at) WHERE NOT deleted;
CREATE INDEX record_cursor ON record (stream, cursor, record_key) WHERE NOT deleted;
CREATE INDEX record_thread ON record (stream, thread, place, record_key)
  WHERE NOT deleted AND thread IS NOT NULL;
CREATE TABLE document (
  seq bigint PRIMARY KEY,
  conn integer NOT NULL,
  emitted_at text NOT NULL,
  data text NOT NULL,
  big text,
  changed text
);
CREATE TABLE tombstone (seq bigint PRIMARY KEY, conn integer NOT NULL, deleted_at text NOT NULL);
CREATE TABLE chunk (
  value bigint NOT NULL,
  no integer NOT NULL,
  conn integer NOT NULL,
  text bytea NOT NULL,
  PRIMARY KEY (value, no)
);
CREATE TABLE cell (
  seq bigint NOT NULL,
  ordinal integer NOT NULL,
  conn integer NOT NULL,
  key bytea NOT NULL,
  number numeric,
  PRIMARY KEY (seq, ordinal)
);
CREATE INDEX cell_key ON cell (ordinal, key, seq) INCLUDE (number);
CREATE TABLE change (
  stream integer NOT NULL,
  version bigint NOT NULL,
  seq bigint NOT NULL,
  conn integer NOT NULL,
  fields text,
  PRIMARY KEY (stream, version)
);
CREATE INDEX change_seq ON change (seq, version);

CREATE TABLE term (
  seq bigint NOT NULL,
  ordinal integer NOT NULL,
  conn integer NOT NULL,
  words integer NOT NULL,
  terms tsvector NOT NULL,
  PRIMARY KEY (seq, ordinal)
) WITH (toast_tuple_target = 8160);
CREATE TABLE passage (
  seq bigint NOT NULL,
  ordinal integer NOT NULL,
  start integer NOT NULL,
  conn integer NOT NULL,
  terms tsvector NOT NULL,
  PRIMARY KEY (seq, ordinal, start)
) WITH (toast_tuple_target = 8160);
ALTER TABLE term ALTER terms SET STORAGE MAIN;
ALTER TABLE passage ALTER terms SET STORAGE MAIN;
CREATE TABLE word_count (
  word text COLLATE "C" NOT NULL,
  ordinal integer NOT NULL,
  conn integer NOT NULL,
  n integer NOT NULL,
  PRIMARY KEY (word, ordinal)
) WITH (fillfactor = 70);
CREATE TABLE letter (char text COLLATE "C" PRIMARY KEY);

CREATE TABLE blob (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  conn integer NOT NULL,
  blob_id text COLLATE "C" NOT NULL,
  media_type text NOT NULL,
  size_bytes bigint NOT NULL,
  sha256 text NOT NULL,
  UNIQUE (conn, blob_id)
);
CREATE INDEX blob_name ON blob (blob_id);
CREATE TABLE blob_part (
  blob bigint NOT NULL,
  no integer NOT NULL,
  conn integer NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (blob, no)
);
ALTER TABLE blob_part ALTER data SET STORAGE EXTERNAL;
CREATE TABLE blob_use (
  blob bigint NOT NULL,
  seq bigint NOT NULL,
  field text COLLATE "C" NOT NULL,
  conn integer NOT NULL,
  PRIMARY KEY (blob, seq, field)
);
CREATE INDEX blob_use_seq ON blob_use (seq);

CREATE TABLE "grant" (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  grant_id text COLLATE "C" NOT NULL UNIQUE,
  token_hash bytea NOT NULL UNIQUE,
  label text,
  document text NOT NULL,
  created_at text NOT NULL,
  expires_at text,
  revoked_at text
);
CREATE TABLE package (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  package_id text COLLATE "C" NOT NULL UNIQUE,
  token_hash bytea NOT NULL UNIQUE,
  label text,
  created_at text NOT NULL,
  expires_at text,
  revoked_at text
);
CREATE TABLE member (
  package bigint NOT NULL REFERENCES package(id),
  no integer NOT NULL,
  name text NOT NULL,
  grant_id text NOT NULL,
  held text NOT NULL,
  origin text,
  token text,
  PRIMARY KEY (package, no)
);

-- The second wall. A role of web processes sees the rows of the connections that its transaction
-- names, and before that the grants alone. Row security would keep an index of words from being
-- used, so those tables have views, and the role may not read the tables themselves. The rest of
-- the wall is in row_security.sql.
CREATE FUNCTION rung_conns() RETURNS integer[] STABLE LANGUAGE sql AS
  $$ SELECT coalesce(nullif(current_setting('rung.conns', true), ''), '{}')::integer[] $$;
DO $$
DECLARE
  one text;
  seen CONSTANT text := 'conn = ANY ((SELECT rung_conns())::integer[])';
BEGIN
  FOREACH one IN ARRAY '{stream, scope, record, document, tombstone, chunk, cell, change, blob,
    blob_part, blob_use}'::text[] LOOP
    EXECUTE format('CREATE POLICY seen ON %I FOR SELECT USING (%s)', one, seen);
  END LOOP;
  FOREACH one IN ARRAY '{term, passage, word_count}'::text[] LOOP
    EXECUTE format('CREATE VIEW %I AS SELECT * FROM %I WHERE %s', one || '_seen', one, seen);
  END LOOP;
  FOREACH one IN ARRAY '{grant, package, member}'::text[] LOOP
    EXECUTE format('CREATE POLICY seen ON %I FOR SELECT USING (%s)', one,
      $p$coalesce(current_setting('rung.conns', true), '') = ''$p$);
  END LOOP;
  CREATE POLICY seen ON connection FOR SELECT USING (id = ANY ((SELECT rung_conns())::integer[]));
END $$;
