"""REST under `/v1` and `/papers/v1`: query strings in, PDPP bodies out."""
