"""Ways to break an input: bytes flipped, cut, doubled, put in; plain data with values and shapes that nobody expects."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

# What is put in the place of a value, or as a key
VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1,
    2**31,
    2**63,
    10**40,
    0.5,
    -0.0,
    1e300,
    1e-300,
    float("nan"),
    float("inf"),
    "",
    " ",
    "x",
    "0",
    "-1",
    "main",
    "../../x",
    "/etc/passwd",
    "~nosuchuser/x",
    "a\0b",
    "\ud800",
    "\u202e\x1b[31m",
    "${HOME}",
    "x" * 5000,
    "<script>alert(1)</script>",
    [],
    {},
    [1, 2, 3],
    ["a", "b"],
    [[]],
    [None],
    {"a": 1},
    {"": {}},
    {"kind": "hf"},
    {"file": "x"},
)
BITS = (
    b"\0",
    b"\xff",
    b"\n",
    b"\r\n",
    b'"',
    b",",
    b"\t",
    b"[" * 50,
    b"{" * 50,
    b"\xed\xa0\x80",
    b"\\ud800",
    b"\xff\xfe",
    b"9" * 5000,
    b"1e999",
    b"NaN",
    b"&a [*a]",
    b"<<: *a",
    b"!!python/name:os.system ",
    b"\x80\x04",
    b"PK\x03\x04",
    b"\xef\xbb\xbf",
    b"- ",
    b": ",
    b"  ",
)


def broken_bytes(data: bytes, rng: random.Random) -> bytes:
    """One to four changes of a file's bytes."""
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        length = rng.choice((1, 1, 2, 4, 8, 64))
        match rng.randrange(7):
            case 0 if data:
                at = min(at, len(data) - 1)
                data = data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
            case 1:
                data = data[:at]
            case 2:
                data = data[:at] + data[at + length :]
            case 3:
                data = data[:at] + rng.choice(BITS) + data[at:]
            case 4:
                data = data[:at] + rng.randbytes(length) + data[at + length :]
            case 5:
                data = data[:at] + data[max(0, at - length) : at] * rng.choice((2, 50)) + data[at:]
            case _:
                data = data[at:] + data[:at]
    return data


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in nested plain data."""
    if path:
        yield path
    inside = data.items() if isinstance(data, dict) else enumerate(data[:20]) if isinstance(data, list) else ()
    for key, value in inside:
        yield from places(value, (*path, key))


def broken_data(data: Any, rng: random.Random) -> Any:
    """One to three changes of plain data: another value, a place less, a key more, another name, a part elsewhere."""
    data = copy.deepcopy(data)
    for _ in range(rng.randint(1, 3)):
        every = list(places(data))
        if not every:
            return rng.choice(VALUES)
        *way, last = rng.choice(every)
        inside = data
        for part in way:
            inside = inside[part]
        value = copy.deepcopy(rng.choice(VALUES))
        match rng.randrange(6):
            case 0 | 1:
                inside[last] = value
            case 2:
                del inside[last]
            case 3 if isinstance(inside, dict):
                inside[str(rng.choice(VALUES))] = value
            case 4 if isinstance(inside, dict):
                inside[f"{last}x"] = inside.pop(last)
            case _:
                other = data
                for part in rng.choice(every):
                    try:
                        other = other[part]
                    except (KeyError, IndexError, TypeError):
                        break
                inside[last] = copy.deepcopy(other) if len(repr(other)) < 10_000 else value
    return data


def as_json(data: Any) -> bytes:
    import json

    return json.dumps(data).encode()


def as_yaml(data: Any) -> bytes:
    import yaml

    return yaml.safe_dump(data).encode("utf-8", "surrogatepass")
