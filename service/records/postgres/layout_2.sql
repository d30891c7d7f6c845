-- Layout 2: the index of words keeps the folded texts, which search ranks records by. An index that
-- lacks them is built anew.

ALTER TABLE term ADD COLUMN folded text NOT NULL DEFAULT '';
ALTER TABLE passage ADD COLUMN folded text NOT NULL DEFAULT '';
CREATE OR REPLACE VIEW term_seen AS
  SELECT * FROM term WHERE conn = ANY ((SELECT rung_conns())::integer[]);
CREATE OR REPLACE VIEW passage_seen AS
  SELECT * FROM passage WHERE conn = ANY ((SELECT rung_conns())::integer[]);
UPDATE meta SET value = '' WHERE key = 'fold_version';
