"""Small pictures of rows for the page."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np


def png_data_uri(image: np.ndarray) -> str:
    """A picture [channels, height, width] as a grey PNG: the mean of its channels, from its darkest to its brightest."""
    grey = np.asarray(image, dtype=np.float64).mean(axis=0)
    low, high = float(grey.min()), float(grey.max())
    pixels = np.round((grey - low) / ((high - low) or 1.0) * 255).astype(np.uint8)
    height, width = pixels.shape
    raw = b"".join(b"\x00" + row.tobytes() for row in pixels)  # filter type 0 before each line

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(data).decode("ascii")
