"""Ways in which a stored file can come to harm."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np


def flipped(path: Path) -> None:
    """One bit, past the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) * 3 // 5] ^= 1
    path.write_bytes(bytes(data))


def halved(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def replaced(path: Path) -> None:
    """By a file of another kind."""
    path.write_bytes(b"{}" if path.suffix in (".json", ".jsonl", ".log") else b"\x93NUMPY")


def gone(path: Path) -> None:
    path.unlink()


def other_numbers(path: Path) -> None:
    """Numbers that are not those which were written, in a file that can be read: NaN in arrays, another digit in text."""
    if path.suffix == ".npy":
        values = np.load(path)
        values.flat[0] = np.nan if np.issubdtype(values.dtype, np.floating) else values.flat[0] + 1
        np.save(path, values)
    elif path.suffix == ".npz":
        with np.load(path) as file:
            arrays = dict(file)
        name = next(name for name, values in arrays.items() if np.issubdtype(values.dtype, np.number) and values.size)
        changed = arrays[name].copy()
        changed.flat[0] = np.nan if np.issubdtype(changed.dtype, np.floating) else 1 - min(int(changed.flat[0]), 1)
        np.savez(path, **{**arrays, name: changed})
    elif path.suffix == ".safetensors":
        from safetensors.numpy import load_file, save_file

        tensors = load_file(path)
        name = next(name for name, values in sorted(tensors.items()) if values.dtype == np.float32 and values.size > 1)
        tensors[name] = np.full_like(tensors[name], np.nan)
        save_file(tensors, path)
    else:
        text = path.read_text()
        found = list(re.finditer(r"(?<=[ .:])\d(?=[\d,\s}\]])", text)) or list(re.finditer(r"\d", text))
        at = found[len(found) // 2].start()
        path.write_text(text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :])


DAMAGES: dict[str, Callable[[Path], None]] = {
    "flipped": flipped,
    "halved": halved,
    "emptied": emptied,
    "replaced": replaced,
    "gone": gone,
    "other-numbers": other_numbers,
}
