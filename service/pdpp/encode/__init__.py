"""From typed values to PDPP bodies: how REST and `--json` spell what a source answered."""
