-- Once all papers are there: their facets, from the temporary table `found`, with how many papers
-- have each and each pair of them.
INSERT INTO facet_node (facet_type, value, paper_count)
  SELECT facet_type, value, count(*) FROM found GROUP BY 1, 2 ORDER BY min(rowid);
INSERT INTO paper_facet
  SELECT paper_id, node_id FROM found JOIN facet_node USING (facet_type, value)
  ORDER BY found.rowid;
INSERT INTO facet_edge
  SELECT a.node_id, b.node_id, count(*)
  FROM paper_facet a JOIN paper_facet b ON a.paper_id = b.paper_id AND a.node_id < b.node_id
  GROUP BY 1, 2;
INSERT INTO year_count SELECT year, count(*) FROM paper GROUP BY 1;
INSERT INTO month_count SELECT month, count(*) FROM paper GROUP BY 1;
INSERT INTO paper_fts (paper_fts) VALUES ('optimize');
INSERT INTO paper_fts_trigram (paper_fts_trigram) VALUES ('optimize');
