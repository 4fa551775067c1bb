"""The scheduler backend framework: the interface, the registry, and one module per built-in backend."""
