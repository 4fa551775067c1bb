"""Tables: what ``kubectl get`` prints, rendered by the server."""
