"""Files that a crash cannot halve and a flipped bit cannot change unseen.

Writing. A file or directory is written under a name of its own, `.NAME.xxxxxxxx.part`, flushed to disk and renamed: readers see
the old one or the new one. Whoever writes holds a lock on its part; a part that nobody holds was left by a killed process, and
the next write into the same directory removes it.

Reading. A JSON object ends with `sha256`, the digest of the rest. Files that are not JSON are named with their digests in a JSON
file beside them. A file that does not fit its digest is `Damaged`. One without a digest was written by hand and is taken as it
is, unless the reader knows that only sidequest writes such files (`must_be_sealed`).
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from sidequest.errors import Damaged, SettingsError, first_line

try:
    import fcntl
except ImportError:  # not a Unix system: parts of killed processes are known by their age alone
    fcntl = None  # type: ignore[assignment]

PART = ".part"
SEAL = "sha256"
MOST_UNPACKED = 2**28  # bytes of a small npz
FORGOTTEN = 86_400  # seconds after which a part is removed where the file system has no locks


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write into; it takes its name when all went well, and is gone otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_parts(path.parent)
    part, handle = _new_part(path)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextmanager
def atomic_directory(directory: Path) -> Iterator[Path]:
    """A directory to fill; it takes the place of `directory` when all went well, and is gone otherwise."""
    directory = Path(os.path.abspath(directory))
    directory.parent.mkdir(parents=True, exist_ok=True)
    remove_parts(directory.parent)
    with _held_directory(directory) as part:
        fresh = part / "new"
        fresh.mkdir()
        yield fresh
        if directory.exists():
            os.replace(directory, part / "old")
        os.replace(fresh, directory)


@contextmanager
def temporary_directory(purpose: str) -> Iterator[Path]:
    """A directory where the system keeps what is temporary, for as long as it is needed. What killed processes have left there is
    removed, as parts are."""
    remove_forgotten()
    with _held_directory(Path(tempfile.gettempdir()) / f"sidequest-{purpose}", mode=0o700) as place:
        yield place


def remove_forgotten() -> None:
    """Remove the temporary directories of this user's processes that are gone. Others have theirs there too: the name decides."""
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if re.fullmatch(rf"\.sidequest-[a-z]+\.[0-9a-f]{{8}}\{PART}", entry.name) and entry.is_dir(
                follow_symlinks=False
            ):
                is_ours = fcntl is None or entry.stat(follow_symlinks=False).st_uid == os.getuid()
                if is_ours and not _is_held(Path(entry.path)):
                    _remove(Path(entry.path))


def write_atomically(path: Path, data: bytes) -> None:
    with atomic_file(path) as file:
        file.write(data)


def link_or_copy(source: Path, target: Path) -> None:
    """A second name for every file of a directory; a copy where the file system has no second names."""
    for path in source.rglob("*"):
        if path.is_file():
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(path, place)
            except OSError:
                shutil.copyfile(path, place)


def remove_parts(directory: Path) -> None:
    """Remove what killed processes have left in a directory: parts that nobody holds."""
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(".") and entry.name.endswith(PART) and not _is_held(Path(entry.path)):
                _remove(Path(entry.path))


def remove_all_parts(directory: Path) -> None:
    """The same for a directory and all inside it."""
    for place, _, _ in os.walk(directory):
        remove_parts(Path(place))


def _part_name(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}{PART}")


def _new_part(path: Path) -> tuple[Path, int]:
    """A new file, held. Its mode is what the user's umask says."""
    while True:
        part = _part_name(path)
        handle = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0), 0o666)
        _lock(handle)
        with contextlib.suppress(FileNotFoundError):  # removed between its creation and the lock: once more
            if os.path.samestat(os.stat(part), os.fstat(handle)):
                return part, handle
        os.close(handle)


@contextmanager
def _held_directory(path: Path, mode: int = 0o777) -> Iterator[Path]:
    """A new directory beside a path, held; gone at the end."""
    while True:
        part = _part_name(path)
        part.mkdir(mode)
        with contextlib.suppress(FileNotFoundError):  # removed between its creation and the lock: once more
            held = _hold(part)
            break
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)
        if held is not None:
            os.close(held)


def _hold(part: Path) -> int | None:
    """Hold a directory."""
    if fcntl is None:
        return None
    handle = os.open(part, os.O_RDONLY)
    _lock(handle)
    try:
        os.stat(part)
    except FileNotFoundError:
        os.close(handle)
        raise
    return handle


def _lock(handle: int) -> None:
    if fcntl is not None:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)


def _is_held(part: Path) -> bool:
    """Whether somebody is writing it. Where there are no locks: whether it is young."""
    try:
        handle = os.open(part, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:  # gone, or not a file that sidequest made
        return True
    try:
        if fcntl is None:
            raise OSError
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return time.time() - os.fstat(handle).st_mtime < FORGOTTEN
    finally:
        os.close(handle)
    return False


def _remove(part: Path) -> None:
    if part.is_dir() and not part.is_symlink():
        shutil.rmtree(part, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            part.unlink()


# JSON with a seal


def write_json(path: Path, value: Any, *, seal: bool = True) -> None:
    """Canonical JSON: sorted keys, so that equal values are equal bytes. An object is sealed with its digest, unless it is for
    another program that would wonder at it."""
    if seal and isinstance(value, dict):
        value = sealed(value)
    write_atomically(path, (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode())


def sealed(value: dict[str, Any]) -> dict[str, Any]:
    """Plain data with the digest of the rest as its last entry."""
    plain = json.loads(json.dumps({key: kept for key, kept in value.items() if key != SEAL}))
    return {**plain, SEAL: digest(plain)}


def read_json(path: Path, *, must_be_sealed: bool = False) -> Any:
    """Plain data without its seal. must_be_sealed: for files that only sidequest writes."""
    try:
        text = path.read_bytes().decode("utf-8")
        value = json.loads(text)
    except (ValueError, RecursionError) as error:  # a ValueError: no UTF-8, no JSON, or a number of thousands of digits
        raise Damaged(path, f"it is not JSON ({first_line(error)})") from None
    if re.search(r"\\u[dD][89a-fA-F]", text):  # an escape can write half of a character, which nothing can write again
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except (UnicodeEncodeError, RecursionError):
            raise Damaged(path, "it holds half of a character") from None
    return unsealed(value, path, must_be_sealed=must_be_sealed)


def unsealed(value: Any, path: Path, *, must_be_sealed: bool = False) -> Any:
    """Check the seal of plain data, if it has one, and leave it out."""
    if isinstance(value, dict) and SEAL in value:
        plain = {key: kept for key, kept in value.items() if key != SEAL}
        if value[SEAL] != digest(plain):
            remedy = f"If it was changed on purpose, remove its `{SEAL}`; else delete it and give its command again"
            raise Damaged(path, f"its content does not fit its {SEAL}", remedy)
        return plain
    if must_be_sealed:
        raise Damaged(path, f"it has no {SEAL}")
    return value


# Digests


def digest(value: Any) -> str:
    """A content digest of plain data."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_digests(directory: Path) -> dict[str, str]:
    """Of every file in a directory and inside it, by its path there."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): file_digest(path) for path in files}


def check_files(directory: Path, digests: Mapping[str, str]) -> None:
    """Refuse a directory whose files are not those of the digests."""
    for name, wanted in digests.items():
        path = directory / name
        try:
            if ".." in Path(name).parts or Path(name).is_absolute() or (path.exists() and not path.is_file()):
                raise Damaged(path, "it is no plain file of this directory")
            content = file_digest(path)
        except OSError as error:
            raise Damaged(path, f"it cannot be read ({error.strerror})") from None
        if content != wanted:
            raise Damaged(path, "its content does not fit the digest that was written with it")


# Arrays


def npy_bytes(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def npz_bytes(arrays: Mapping[str, np.ndarray], *, compress: bool = False) -> bytes:
    """Arrays by name, sealed with the digest of them all."""
    buffer = io.BytesIO()
    named: dict[str, Any] = {**arrays, SEAL: np.array(_arrays_digest(arrays))}
    (np.savez_compressed if compress else np.savez)(buffer, **named)
    return buffer.getvalue()


def read_npz(path: Path, *, must_be_sealed: bool = True) -> dict[str, np.ndarray]:
    """Arrays by name, checked against their seal. A small file that unpacks to more than the memory holds is refused."""
    try:
        with zipfile.ZipFile(path) as packed, np.load(path, allow_pickle=False) as file:
            if sum(part.file_size for part in packed.infolist()) > max(MOST_UNPACKED, 200 * path.stat().st_size):
                raise ValueError(f"it unpacks to more than {MOST_UNPACKED} bytes")
            arrays = {name: file[name] for name in file.files}
    except Exception as error:  # zipfile, zlib and numpy each have errors of their own
        if isinstance(error, FileNotFoundError):
            raise
        raise Damaged(path, f"it does not hold arrays ({type(error).__name__}: {first_line(error)})") from None
    seal = arrays.pop(SEAL, None)
    if seal is None and must_be_sealed:
        raise Damaged(path, f"it has no {SEAL}")
    if seal is not None and str(seal) != _arrays_digest(arrays):
        raise Damaged(path, f"its content does not fit its {SEAL}")
    return arrays


def _arrays_digest(arrays: Mapping[str, np.ndarray]) -> str:
    hashed = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        plain = np.ascontiguousarray(array)
        hashed.update(f"{name} {plain.dtype.str} {np.shape(array)}\n".encode())
        hashed.update(plain.tobytes())
    return hashed.hexdigest()


# Where results are kept


def cache_directory() -> Path:
    """Where encoder states and trial results are kept between runs: `SIDEQUEST_CACHE`, or the user's cache directory."""
    try:
        if named := os.environ.get("SIDEQUEST_CACHE"):
            return Path(named).expanduser()
        if usual := os.environ.get("XDG_CACHE_HOME"):
            return Path(usual) / "sidequest"
        return Path.home() / ".cache" / "sidequest"
    except RuntimeError:
        raise SettingsError(
            "there is no home directory to keep results in: set SIDEQUEST_CACHE to a directory"
        ) from None
