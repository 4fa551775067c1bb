"""Load for benchmarks on a real API server: nodes, pods and gangs, and a watcher that says when they were bound."""
