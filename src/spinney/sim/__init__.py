"""A whole cluster in one process, on a real or a virtual clock."""
