-- The digests of the bytes from which documents were parsed. Every change of a document removes them.
CREATE TABLE parsed (
  digest bigint PRIMARY KEY,
  connection integer NOT NULL,
  seq bigint NOT NULL REFERENCES document ON DELETE CASCADE
);
CREATE INDEX parsed_seq ON parsed (seq);
