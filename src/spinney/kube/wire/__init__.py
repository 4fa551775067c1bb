"""HTTP/1.1 over TLS to one API server: connections, answers as they arrive, and what has to pass a proxy."""
