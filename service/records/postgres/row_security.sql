-- The policies also bind the owner of the tables, who may serve too: it writes, and reads all, where
-- it says so. A store may have some of this already.

-- Names the connections of the transaction, all of them with NULL.
CREATE OR REPLACE FUNCTION rung_confine(names text[]) RETURNS text LANGUAGE plpgsql
  SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  before CONSTANT text := coalesce(current_setting('rung.writes', true), '');
  conns text;
BEGIN
  PERFORM set_config('rung.writes', 'on', true);
  conns := array(SELECT id FROM connection WHERE names IS NULL OR connection_id = ANY (names));
  PERFORM set_config('rung.writes', before, true);
  RETURN set_config('rung.conns', conns, true);
END $$;
DO $$
DECLARE
  one text;
BEGIN
  FOR one IN SELECT tablename FROM pg_policies
    WHERE schemaname = current_schema AND policyname = 'seen' LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', one);
    EXECUTE format('DROP POLICY IF EXISTS written ON %I', one);
    EXECUTE format('CREATE POLICY written ON %I USING (%s)', one,
      $p$(SELECT current_setting('rung.writes', true)) = 'on'$p$);
  END LOOP;
END $$;
-- Numbers alone: whether a grant covers a connection, or all that there are.
CREATE OR REPLACE FUNCTION rung_searched() RETURNS TABLE (conn integer, ordinals integer[])
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  before CONSTANT text := coalesce(current_setting('rung.writes', true), '');
BEGIN
  PERFORM set_config('rung.writes', 'on', true);
  RETURN QUERY
    SELECT s.conn, array_agg(s.ordinal) FROM scope s WHERE s.searchable GROUP BY s.conn;
  PERFORM set_config('rung.writes', before, true);
END $$;
CREATE OR REPLACE VIEW searched AS SELECT * FROM rung_searched();
