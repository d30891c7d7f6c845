-- Layout 6: the full-text tables keep their texts. A writer rebuilds them.

DROP TABLE IF EXISTS fts;
DROP TABLE IF EXISTS fts_passage;
DROP VIEW IF EXISTS fts_text;
DROP VIEW IF EXISTS passage_text;
CREATE VIRTUAL TABLE fts USING fts5(body, tokenize="{TOKENIZER}");
CREATE VIRTUAL TABLE fts_passage USING fts5(body, tokenize="{TOKENIZER}");
UPDATE meta SET value = '' WHERE key = 'fold_version';
