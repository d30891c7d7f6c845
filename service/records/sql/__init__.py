"""SQL that all engines share."""
