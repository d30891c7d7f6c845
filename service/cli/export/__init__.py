"""`rung export`: writes whole values to files and resumes interrupted runs."""
