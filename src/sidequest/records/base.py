"""What every record has: a version, a way to be read and written, and numbers that may be unknown."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, ValidationError

from sidequest.errors import SettingsError
from sidequest.files import read_json, write_json


class Part(BaseModel):
    """A piece of a record."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class Record(Part):
    """A file between two rooms. Subclasses say its usual name, which command makes it, and how old versions become this one."""

    FILE: ClassVar[str]
    MADE_BY: ClassVar[str]
    VERSION: ClassVar[int] = 1
    SEALED: ClassVar[bool] = False  # whether a file without its digest is refused: one that nobody edits

    version: int = 1

    @classmethod
    def upgraded(cls, data: Any, version: int) -> Any:
        """The plain data of an older version as that of this one. Version 0 is a file of sidequest 0.1, which had none."""
        return data

    @classmethod
    def read(cls, path: Path) -> Self:
        """path: the file, or the directory that it lies in."""
        path = path / cls.FILE if path.is_dir() else path
        try:
            data = read_json(path, must_be_sealed=cls.SEALED)
        except FileNotFoundError:
            raise SettingsError(f"{path}: no such file; `{cls.MADE_BY}` makes it") from None
        except OSError as error:
            raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
        return cls.of(data, path)

    @classmethod
    def of(cls, data: Any, where: Path | str = "") -> Self:
        """From plain data of any version."""
        version = data.get("version", 0) if isinstance(data, dict) else 0
        if not isinstance(version, int) or not 0 <= version <= cls.VERSION:
            raise SettingsError(
                f"{where}: has version {version!r}, this sidequest reads versions up to {cls.VERSION} of {cls.FILE}"
            )
        try:
            if version < cls.VERSION:
                data = {**cls.upgraded(data, version), "version": cls.VERSION}
            return cls.model_validate(data)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "content"
            raise SettingsError(f"{where}: not the {cls.FILE} of `{cls.MADE_BY}`: {place}: {first['msg']}") from None
        except (KeyError, TypeError, AttributeError, ValueError) as error:  # in `upgraded`
            raise SettingsError(
                f"{where}: not the {cls.FILE} of `{cls.MADE_BY}`: {type(error).__name__}: {error}"
            ) from None

    @classmethod
    def read_if_there(cls, path: Path) -> Self | None:
        """None where there is no such file."""
        path = path / cls.FILE if path.is_dir() else path
        return cls.read(path) if path.is_file() else None

    def write(self, path: Path) -> None:
        """path: the file, or the directory that it goes into. Equal records are equal bytes."""
        named = path.suffix == Path(self.FILE).suffix and not path.is_dir()
        write_json(path if named else path / self.FILE, self.to_json())

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


def _read_unknown(value: Any) -> Any:
    return math.nan if value is None else value


def _write_unknown(value: float) -> float | None:
    return value if math.isfinite(value) else None


# A number that may be unknown: NaN in Python and null in the file, because JSON has no infinities.
Known = Annotated[float, BeforeValidator(_read_unknown), PlainSerializer(_write_unknown, return_type=float | None)]
