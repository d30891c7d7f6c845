"""Search: from a question to candidates, their ranking, hits and pages."""
