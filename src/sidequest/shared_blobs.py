"""Entries of the store at a URL that several machines see: a directory, or an object store (`s3://…`, `gs://…`), through
fsspec.

`SIDEQUEST_STORE` names it. An entry is one blob, a zip of its directory; it is complete or not there. Every entry carries the
digests of its files, so what arrives damaged is made again. Credentials are the URL's scheme's own business (environment,
profiles): a URL with a password in it is refused, because commands and messages show it.
"""

from __future__ import annotations

import functools
import io
import os
import secrets
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sidequest.errors import DiskError, SettingsError, first_line
from sidequest.files import atomic_directory

VARIABLE = "SIDEQUEST_STORE"


class SharedBlobs:
    def __init__(self, url: str) -> None:
        if "@" in url.partition("://")[2].partition("/")[0]:
            raise SettingsError(f"{VARIABLE}: a URL with a user or password in it; give credentials by the environment")
        import fsspec

        self._url = url
        try:
            self._files, self._root = fsspec.url_to_fs(url)
        except (ValueError, ImportError, OSError) as error:
            raise SettingsError(f"{VARIABLE}={url}: {error}") from None

    def fetch(self, name: str, directory: Path) -> bool:
        """Bring an entry into a directory; False where there is none."""
        with self._speaking():
            try:
                content = self._files.cat_file(self._path(name))
            except FileNotFoundError:
                return False
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as packed, atomic_directory(directory) as fresh:
                for part in packed.namelist():
                    target = (fresh / part).resolve()
                    if fresh.resolve() not in target.parents:
                        return False
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(packed.read(part))
        except zipfile.BadZipFile:
            return False
        return True

    def send(self, directory: Path, name: str) -> None:
        """Keep an entry. Two machines that send the same one send the same content."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as packed:
            for path in sorted(path for path in directory.rglob("*") if path.is_file()):
                packed.write(path, path.relative_to(directory).as_posix())
        target = self._path(name)
        with self._speaking():
            self._files.makedirs(target.rpartition("/")[0], exist_ok=True)
            if "file" in _protocols(self._files):  # an object store puts a blob whole; here the half needs another name
                part = f"{target}.{secrets.token_hex(4)}.part"
                self._files.pipe_file(part, buffer.getvalue())
                self._files.mv(part, target)
            else:
                self._files.pipe_file(target, buffer.getvalue())

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        """What a store says that refuses or does not answer, each in errors of its own, becomes one sentence."""
        try:
            yield
        except Exception as error:
            raise DiskError(
                f"{VARIABLE}={self._url}: {type(error).__name__}: {first_line(error)}. What was done before is kept"
            ) from error

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}.zip"


def _protocols(files: Any) -> tuple[str, ...]:
    return (files.protocol,) if isinstance(files.protocol, str) else tuple(files.protocol)


def shared_blobs() -> SharedBlobs | None:
    url = os.environ.get(VARIABLE)
    return _opened(url) if url else None


@functools.lru_cache(maxsize=4)
def _opened(url: str) -> SharedBlobs:
    return SharedBlobs(url)
