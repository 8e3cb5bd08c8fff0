"""A suite file from disk to plain data: YAML without surprises, and environment variables in paths."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml

from sidequest.errors import SettingsError
from sidequest.paths import input_file

LARGEST = 100_000  # values in a suite file, with every alias written out
LARGEST_FILE = 2**19  # bytes; to read more takes longer than anybody waits
SPLIT_PATHS = ("file", "image", "label")
TASK_PATHS = ("train", "select", "report", "path", "saved")
MODEL_PATHS = ("encoder", "factory")
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def read_suite_file(path: Path) -> dict[str, Any]:
    """The YAML of a suite file; a key that is written twice is refused, because YAML would keep only the last.

    `${NAME}` in a path stands for an environment variable, so that one file serves machines that keep their data in different
    places. Elsewhere it is refused: what stands in a suite file is written into reports, and variables may hold secrets.
    """
    input_file(path, "a suite file")
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise SettingsError(f"{path}: a suite file has at most {LARGEST_FILE} bytes, found {path.stat().st_size}")
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_StrictLoader)
        if not isinstance(data, dict):
            raise SettingsError(
                f"{path}: a suite file has fields such as `primary:` and `tasks:`, found {type(data).__name__}"
            )
        _check_size(data, path)
    except (
        ValueError,
        yaml.YAMLError,
    ) as error:  # a ValueError: bytes that are no text, a day that is none, 5,000 digits
        raise SettingsError(f"{path}: not a YAML file: {' '.join(str(error).split())[:500]}") from None
    except RecursionError:
        raise SettingsError(f"{path}: not a suite file: it is nested too deeply") from None
    except OSError as error:
        raise SettingsError(f"{path}: can't be read: {error.strerror}") from None
    return {str(key): _with_environment(value, (str(key),), path) for key, value in data.items()}


def _check_size(value: Any, path: Path) -> None:
    """Refuse a file whose aliases stand for more than anybody writes, or for themselves."""
    sizes: dict[int, int | None] = {}  # None: being counted

    def size(part: Any) -> int:
        if isinstance(part, str) and any("\ud800" <= letter <= "\udfff" for letter in part):
            raise SettingsError(f"{path}: half of a character, found in {part[:60]!r}")
        if not isinstance(part, (dict, list)):
            return 1
        if id(part) in sizes:
            known = sizes[id(part)]
            if known is None:
                raise SettingsError(f"{path}: an alias stands for something that it is a part of")
            return known
        sizes[id(part)] = None
        inside = [*part, *part.values()] if isinstance(part, dict) else part
        sizes[id(part)] = total = 1 + sum(map(size, inside))
        if total > LARGEST:
            raise SettingsError(f"{path}: its aliases stand for more than {LARGEST} values")
        return total

    size(value)


def _with_environment(value: Any, place: tuple[str, ...], path: Path) -> Any:
    """The value with the environment variables of its paths. place: the keys that lead to it."""
    if isinstance(value, Mapping):
        return {key: _with_environment(inner, (*place, str(key)), path) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_environment(inner, place, path) for inner in value]
    if not isinstance(value, str) or not VARIABLE.search(value):
        return value
    where = ".".join(place)
    if not _is_path(place):
        raise SettingsError(
            f"{path}: {where}: an environment variable may stand in a path ({', '.join(TASK_PATHS)}, model.encoder), "
            f"found {value!r}; suite files are written into reports, and variables may hold secrets"
        )

    def named(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            raise SettingsError(f"{path}: {where}: the environment variable {match[1]} is not set")
        return os.environ[match[1]]

    return VARIABLE.sub(named, value)


def _is_path(place: tuple[str, ...]) -> bool:
    if place[0] == "model":
        return len(place) == 2 and place[1] in MODEL_PATHS
    if place[0] != "tasks" or len(place) < 3 or place[2] not in TASK_PATHS:
        return False
    return len(place) == 3 or (len(place) == 4 and place[3] in SPLIT_PATHS)


class _StrictLoader(yaml.SafeLoader):
    """YAML's safe loader, but a repeated key is an error, and merges cannot explode."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        if len(node.value) > LARGEST:
            raise yaml.MarkedYAMLError(
                problem=f"its merges stand for more than {LARGEST} values", problem_mark=node.start_mark
            )

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":  # `<<`: what it brings may be overridden
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.MarkedYAMLError(
                    problem="a key is a name, not a list or mapping", problem_mark=key_node.start_mark
                )
            if key in seen:
                raise yaml.MarkedYAMLError(problem=f"{key!r} is written twice", problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)
