"""Bytes of a text file as a string, or an error that names the line and the byte."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from pathlib import Path

from sidequest.errors import DataError
from sidequest.paths import what_is_at

UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Python knows them by name, but no file of texts is written in them.
NO_ENCODINGS = ("idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape")
ENCODING_RULE = "an encoding is one of texts; examples: utf-8, latin-1, cp1252, utf-16"
# A file that unpacks to more bytes than this, and to more than this many times its own size, was made to fill the memory.
LARGEST_UNPACKED, LARGEST_RATIO = 2**28, 200


def read_bytes(path: Path) -> bytes:
    """The file's bytes, unpacked if its name ends in `.gz`."""
    try:
        if what_is_at(path) == "other":  # to read from a pipe is to wait for somebody to write
            raise DataError("a pipe or a device; a plain file is needed here", file=path)
        data = path.read_bytes()
        return _unpacked(data, path) if path.suffix == ".gz" else data
    except FileNotFoundError:
        raise DataError("no such file", file=path) from None
    except IsADirectoryError:
        raise DataError("this is a directory; a file is needed here", file=path) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"not a complete gzip file: {error}", file=path) from None
    except OSError as error:
        raise DataError(f"can't be read: {error.strerror or error}", file=path) from None


def _unpacked(data: bytes, path: Path) -> bytes:
    most = max(LARGEST_UNPACKED, LARGEST_RATIO * len(data))
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        unpacked = file.read(most + 1)
    if len(unpacked) > most:
        raise DataError(f"{len(data)} bytes unpack to more than {most}; unpack it yourself if that is right", file=path)
    return unpacked


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """The file's text without a byte-order mark. Line endings stay as they are: they may be part of a quoted text."""
    return decode(read_bytes(path), encoding, path)


def likely_encoding(data: bytes) -> str:
    """UTF-8 if the bytes can be that; UTF-16 if they begin so; otherwise the Western European code page that reads them."""
    if data.startswith(UTF16_MARKS):
        return "utf-16"
    return next(name for name in ("utf-8", "cp1252", "latin-1") if _decodes(data, name))


def decode(data: bytes, encoding: str, path: Path) -> str:
    """The text that a file's bytes stand for, or an error with the line of the first byte that stands for none."""
    try:
        codec = codecs.lookup(encoding)
    except (LookupError, ValueError):  # a ValueError for a NUL in the name
        raise DataError(f"unknown encoding {encoding[:40]!r}; {ENCODING_RULE}", file=path) from None
    if not getattr(codec, "_is_text_encoding", True) or codec.name.replace("_", "-") in NO_ENCODINGS:
        raise DataError(f"{encoding!r} is no encoding of files; {ENCODING_RULE}", file=path)
    try:
        text = data.decode("utf-8-sig" if codec.name == "utf-8" else codec.name)
        if not codec.name.startswith(("utf-8", "utf-16", "utf-32")):
            text.encode()  # utf-7 can write half of a character
    except UnicodeDecodeError as error:
        raise _undecodable(path, data, codec.name, error.start) from None
    except UnicodeError as error:  # some codecs say no more than that
        raise DataError(f"the file is not {encoding}: {error}", file=path) from None
    return text


def _undecodable(path: Path, data: bytes, encoding: str, position: int) -> DataError:
    position = min(position, len(data) - 1)
    line = data.count(b"\n", 0, position) + 1
    column = position - data.rfind(b"\n", 0, position)
    fault = f"byte 0x{data[position]:02x} at position {column} of the line is not {encoding.upper()}"
    likely = likely_encoding(data)
    if likely == "utf-16":
        hint = "The file begins like UTF-16: say `encoding: utf-16`"
    elif encoding != "utf-8":
        hint = "Name the file's real `encoding:`"
    else:
        hint = f"If the file is a Windows or Western European one, say `encoding: {likely}`; otherwise save it as UTF-8"
    return DataError(f"{fault}. {hint}", file=path, line=line)


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
