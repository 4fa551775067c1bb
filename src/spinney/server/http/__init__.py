"""The API on a port: TLS, connections, and the kubeconfig that finds it."""
