"""JSON pointers (RFC 6901), by which a JSON patch says where it changes something."""


def pointer(base: str, key: str) -> str:
    """Return the pointer to an entry of the object at ``base``; any key may be one."""
    return f"{base}/{key.replace('~', '~0').replace('/', '~1')}"
