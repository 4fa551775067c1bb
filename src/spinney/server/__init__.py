"""The embedded API server: store, REST and discovery, patches, admission, garbage collection."""
