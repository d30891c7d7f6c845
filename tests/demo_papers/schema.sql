CREATE TABLE snapshot_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE paper (
  paper_id TEXT PRIMARY KEY,
  paper_key TEXT NOT NULL,
  paper_key_type TEXT NOT NULL,
  doi TEXT,
  title TEXT NOT NULL,
  year TEXT NOT NULL,
  month TEXT NOT NULL,
  publication_date TEXT NOT NULL,
  venue TEXT NOT NULL,
  preferred_summary_template TEXT NOT NULL,
  summary_preview TEXT NOT NULL,
  paper_index INTEGER NOT NULL DEFAULT 0,
  source_hash TEXT,
  output_language TEXT,
  provider TEXT,
  model TEXT,
  prompt_template TEXT,
  extracted_at TEXT,
  pdf_content_hash TEXT,
  source_md_content_hash TEXT
);

CREATE TABLE paper_summary (
  paper_id TEXT NOT NULL REFERENCES paper(paper_id) ON DELETE CASCADE,
  template_tag TEXT NOT NULL,
  PRIMARY KEY (paper_id, template_tag)
);
CREATE INDEX idx_paper_summary_template ON paper_summary(template_tag);

CREATE TABLE paper_translation (
  paper_id TEXT NOT NULL REFERENCES paper(paper_id) ON DELETE CASCADE,
  lang TEXT NOT NULL,
  md_content_hash TEXT NOT NULL,
  PRIMARY KEY (paper_id, lang)
);

CREATE TABLE paper_bibtex (
  paper_id TEXT PRIMARY KEY REFERENCES paper(paper_id) ON DELETE CASCADE,
  bibtex_raw TEXT NOT NULL,
  bibtex_key TEXT,
  entry_type TEXT
);

CREATE TABLE paper_key_alias (
  paper_key TEXT PRIMARY KEY,
  paper_id TEXT NOT NULL REFERENCES paper(paper_id) ON DELETE CASCADE,
  paper_key_type TEXT NOT NULL,
  meta_fingerprint TEXT
);
CREATE INDEX idx_paper_key_alias_paper_id ON paper_key_alias(paper_id);

CREATE TABLE facet_node (
  node_id INTEGER PRIMARY KEY,
  facet_type TEXT NOT NULL,
  value TEXT NOT NULL,
  paper_count INTEGER NOT NULL DEFAULT 0,
  UNIQUE (facet_type, value)
);
CREATE INDEX idx_facet_node_type ON facet_node(facet_type);
CREATE INDEX idx_facet_node_value ON facet_node(value);

CREATE TABLE paper_facet (
  paper_id TEXT NOT NULL REFERENCES paper(paper_id) ON DELETE CASCADE,
  node_id INTEGER NOT NULL REFERENCES facet_node(node_id) ON DELETE CASCADE,
  PRIMARY KEY (paper_id, node_id)
);
CREATE INDEX idx_paper_facet_node_id ON paper_facet(node_id);

CREATE TABLE facet_edge (
  node_id_a INTEGER NOT NULL REFERENCES facet_node(node_id) ON DELETE CASCADE,
  node_id_b INTEGER NOT NULL REFERENCES facet_node(node_id) ON DELETE CASCADE,
  paper_count INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (node_id_a, node_id_b)
);
CREATE INDEX idx_facet_edge_a ON facet_edge(node_id_a);
CREATE INDEX idx_facet_edge_b ON facet_edge(node_id_b);

CREATE TABLE year_count (year TEXT PRIMARY KEY, paper_count INTEGER NOT NULL);
CREATE TABLE month_count (month TEXT PRIMARY KEY, paper_count INTEGER NOT NULL);

CREATE VIRTUAL TABLE paper_fts USING fts5(
  paper_id UNINDEXED, title, summary, source, translated, metadata, tokenize='unicode61'
);
CREATE VIRTUAL TABLE paper_fts_trigram USING fts5(
  paper_id UNINDEXED, title, venue, tokenize='trigram'
);

CREATE TEMP TABLE found (paper_id TEXT, facet_type TEXT, value TEXT);
