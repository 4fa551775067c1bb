"""Published traces of GPU clusters through the scheduler; every figure with the published one beside it."""
