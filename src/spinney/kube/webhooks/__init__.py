"""Serving admission webhooks: the certificate, the server, and whether an API server would trust it."""
