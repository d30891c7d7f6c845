"""A PDPP resource server over HTTP: connections, deadlines, retries, errors."""
