"""A PDPP resource server over HTTP: connections, deadlines, retries and errors."""
