"""Paths that a user gives: what is there, and whether something can be written, said before any work and in one sentence."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Literal

from sidequest.errors import SettingsError

What = Literal["file", "directory", "nothing", "other"]
ABSENT = (errno.ENOENT, errno.ENOTDIR)


def user_path(text: str | Path, where: str = "") -> Path:
    """A path as a user writes it, with `~` in front."""
    place = f"{where}: " if where else ""
    try:
        path = Path(text).expanduser()
    except RuntimeError:
        raise SettingsError(f"{place}{text}: there is no such home directory") from None
    if "\0" in str(path):
        raise SettingsError(f"{place}a path has no NUL character, found {str(path)!r}")
    return path


def what_is_at(path: Path) -> What:
    """What a path leads to. `other`: a pipe, a socket or a device, from which to read might never end."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        if error.errno in ABSENT:
            return "nothing"
        raise SettingsError(f"{shown(path)}: can't be a path: {error.strerror}") from None
    except ValueError as error:  # NUL, or half of a character
        raise SettingsError(f"{shown(path)}: can't be a path: {error}") from None
    return "file" if stat.S_ISREG(mode) else "directory" if stat.S_ISDIR(mode) else "other"


def shown(path: Path | str) -> str:
    """A path for a message: the end of one that is too long to read."""
    text = str(path)
    return text if len(text) <= 200 else f"…{text[-120:]}"


def input_file(path: Path, what: str) -> Path:
    """Refuse what is no plain file that can be read. what: for the message, `a recipe`."""
    kind = what_is_at(path)
    if kind == "nothing":
        raise SettingsError(f"{shown(path)}: no such file; {what} is needed here")
    if kind != "file":
        is_a = "a directory" if kind == "directory" else "a pipe or a device"
        raise SettingsError(f"{shown(path)}: {what} is a plain file, this is {is_a}")
    return path


def check_output_file(path: Path, option: str = "--out") -> None:
    """Refuse, before any work, a file that cannot be written at its end."""
    kind = what_is_at(path)
    if kind not in ("file", "nothing"):
        is_a = "a directory" if kind == "directory" else "a pipe or a device"
        raise SettingsError(f"{option} {shown(path)}: a file is written there, but this is {is_a}")
    _check_parent(path, option)


def check_output_directory(path: Path, option: str = "--out") -> None:
    """Refuse, before any work, a directory that can be neither made nor written into."""
    kind = what_is_at(path)
    if kind not in ("directory", "nothing"):
        is_a = "a file" if kind == "file" else "a pipe or a device"
        raise SettingsError(f"{option} {shown(path)}: a directory is written there, but this is {is_a}")
    if kind == "nothing":
        _check_parent(path, option)
    elif not os.access(path, os.W_OK | os.X_OK):
        raise SettingsError(f"{option} {shown(path)}: you may not write into this directory")


def _check_parent(path: Path, option: str) -> None:
    """The nearest directory above that is there must take new files, and nothing in between be something else."""
    if not path.name:
        raise SettingsError(f"{option}: the name of a file or directory is needed, found {str(path)!r}")
    if path.is_symlink() and not path.exists():
        raise SettingsError(f"{option} {shown(path)}: is a link that leads nowhere")
    for above in path.absolute().parents:
        kind = what_is_at(above)
        if kind == "nothing" and not above.is_symlink():
            continue
        if kind != "directory":
            raise SettingsError(f"{option} {shown(path)}: {shown(above)} is in its way: it is no directory")
        if not os.access(above, os.W_OK | os.X_OK):
            raise SettingsError(f"{option} {shown(path)}: you may not write into {shown(above)}")
        _check_names(path, above, option)
        return


def _check_names(path: Path, above: Path, option: str) -> None:
    """Ask how long names may be: one that is too long is found only when it is made. Parts have longer names for a while."""
    try:
        longest = os.pathconf(above, "PC_NAME_MAX")
    except (OSError, ValueError, AttributeError):
        return
    for part in path.absolute().relative_to(above).parts:
        if len(os.fsencode(part)) + len("..01234567.part") > longest:
            raise SettingsError(f"{option} {shown(path)}: a name has at most {longest - 15} bytes here")
