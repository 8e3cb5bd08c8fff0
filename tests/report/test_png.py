"""Pictures of rows."""

import base64
import struct
import zlib

import numpy as np

from sidequest.report.png import png_data_uri


def test_a_picture_is_a_png_of_its_pixels():
    image = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
    data = base64.b64decode(png_data_uri(image).partition(",")[2])
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == (4, 3)
    start = data.index(b"IDAT") + 4
    (length,) = struct.unpack(">I", data[start - 8 : start - 4])
    lines = zlib.decompress(data[start : start + length])
    pixels = np.frombuffer(lines, dtype=np.uint8).reshape(3, 5)
    assert (pixels[:, 0] == 0).all()
    np.testing.assert_array_equal(pixels[:, 1:].ravel(), np.round(np.arange(12) / 11 * 255))
