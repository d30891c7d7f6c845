-- The two tables of one facet, which repeat the common ones; {0} is its name.
CREATE TABLE {0} (
  {0}_id INTEGER PRIMARY KEY, value TEXT NOT NULL UNIQUE, paper_count INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE paper_{0} (
  paper_id TEXT NOT NULL REFERENCES paper(paper_id) ON DELETE CASCADE,
  {0}_id INTEGER NOT NULL REFERENCES {0}({0}_id) ON DELETE CASCADE,
  PRIMARY KEY (paper_id, {0}_id)
);
CREATE INDEX idx_paper_{0}_{0}_id ON paper_{0}({0}_id);
INSERT INTO {0} (value, paper_count)
  SELECT value, paper_count FROM facet_node WHERE facet_type = '{0}' ORDER BY node_id;
INSERT INTO paper_{0}
  SELECT paper_id, {0}_id FROM paper_facet JOIN facet_node USING (node_id) JOIN {0} USING (value)
  WHERE facet_type = '{0}';
