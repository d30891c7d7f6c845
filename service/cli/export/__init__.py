"""`rung export`: whole values written to files, resumed where a run was interrupted."""
