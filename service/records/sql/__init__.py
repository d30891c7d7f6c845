"""SQL that all engines have in common."""
