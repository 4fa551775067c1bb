"""The wire format of protobuf: a message is a sequence of numbered values."""

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

_MAX_VARINT = 10
_SIGN = 1 << 63
_MASK = (1 << 64) - 1


class MalformedMessage(ValueError):
    """Bytes that are not a protobuf message."""


def read_message(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Yield the number, the wire type and the value of each field: an unsigned integer, or bytes."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if number == 0:
            raise MalformedMessage(f"field number 0 at byte {position}")
        if wire_type == VARINT:
            value, position = _varint(data, position)
            yield number, wire_type, value
            continue
        if wire_type == BYTES:
            length, position = _varint(data, position)
        elif wire_type in {FIXED64, FIXED32}:
            length = 8 if wire_type == FIXED64 else 4
        else:
            raise MalformedMessage(f"wire type {wire_type} of field {number} is not in use")
        if length > end - position:
            raise MalformedMessage(f"field {number} should have {length} bytes, and {end - position} are left")
        yield number, wire_type, data[position : position + length]
        position += length


def read_varints(data: bytes) -> Iterator[int]:
    """Yield the integers of a packed field."""
    position = 0
    while position < len(data):
        value, position = _varint(data, position)
        yield value


def signed(value: int) -> int:
    """Return a varint as the signed integer that it stands for."""
    return value - (1 << 64) if value & _SIGN else value


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    for at in range(position, min(position + _MAX_VARINT, len(data))):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK, at + 1
        shift += 7
    raise MalformedMessage(f"the integer at byte {position} has no end")
