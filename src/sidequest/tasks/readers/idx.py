"""idx, the format of MNIST: a big-endian header and one array."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np

from sidequest.errors import DataError
from sidequest.tasks.readers.table import Table
from sidequest.tasks.readers.text import read_bytes

MOST_DIMENSIONS = 4
TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx_array(path: Path) -> np.ndarray:
    """The array in an idx file, `.gz` or not, in the machine's byte order."""
    data = read_bytes(path)
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in TYPES:
        raise DataError(f"not an idx file: it begins with the bytes {data[:4].hex(' ') or 'none'}", file=path)
    dtype, dimensions = np.dtype(TYPES[data[2]]), data[3]
    header = 4 + 4 * dimensions
    if len(data) < header:
        raise DataError("the idx header is cut off", file=path)
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise DataError(f"an idx file has 1 to {MOST_DIMENSIONS} dimensions here, found {dimensions}", file=path)
    shape = struct.unpack(f">{dimensions}I", data[4:header])
    expected = math.prod(shape) * dtype.itemsize  # Python's numbers: numpy's would wrap round
    if len(data) - header != expected:
        raise DataError(
            f"the header promises {shape} = {expected} bytes of data, found {len(data) - header}", file=path
        )
    array = np.frombuffer(data, dtype=dtype, offset=header).reshape(shape)
    return array.astype(dtype.newbyteorder("="))


def read_idx(images: Path, labels: Path | None) -> Table:
    """Columns `image` [n, channels, height, width] and, unless the rows are to be predicted, `label` [n]."""
    image = read_idx_array(images)
    if image.ndim not in (3, 4):
        raise DataError(f"images have 3 or 4 dimensions, found the shape {image.shape}", file=images)
    if not image.size:
        raise DataError(f"there are no images: the header says {image.shape}", file=images)
    columns = {"image": image[:, None] if image.ndim == 3 else image}
    if labels is not None:
        label = read_idx_array(labels)
        if label.shape != (len(image),):
            raise DataError(f"one label per image is needed: shape {(len(image),)}, found {label.shape}", file=labels)
        columns["label"] = label
    return Table(columns, str(images))
