"""Places that several machines share, named by a URL. Its password never reaches a file, a page or a message."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from sidequest.errors import SettingsError, masked_argument

_PASSWORD = re.compile(r"://[^\s/:@]*:(?P<password>.+)@")


def is_url(where: Path | str) -> bool:
    return isinstance(where, str) and "://" in where


def without_password(text: str) -> str:
    """A URL with its password replaced by `***`, or a text with those of all URLs in it."""
    return masked_argument(text)


def database_url(url: str) -> str:
    """`postgresql://` means the driver that the extra `postgresql` brings, whichever is SQLAlchemy's own choice."""
    if url.startswith(("postgresql://", "postgres://")):
        if importlib.util.find_spec("psycopg") is None:
            raise SettingsError("a PostgreSQL database needs the package psycopg: pip install 'sidequest[postgresql]'")
        return "postgresql+psycopg://" + url.partition("://")[2]
    return url


def bad_storage(url: str, error: Exception) -> SettingsError:
    """One line about a database that cannot be used."""
    if isinstance(error, SettingsError):
        return error
    secret = _PASSWORD.search(url)
    words = (str(error).splitlines() or [type(error).__name__])[0]
    if secret is not None:
        words = words.replace(secret["password"], "***")
    return SettingsError(
        f"storage {without_password(url)!r}: {without_password(words)}. "
        "A database URL looks like sqlite:///trials.db or postgresql://user@host/name"
    )
