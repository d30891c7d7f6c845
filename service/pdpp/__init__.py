"""The PDPP wire format: decoding, encoding, routes and query parameters."""
