"""A saved Hugging Face dataset (`datasets.load_from_disk`) or one named on the hub. `datasets` is imported only when needed.

No remote code is ever run: a dataset that ships a loading script is refused by `datasets` itself.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sidequest.errors import DataError, SidequestError, first_line, nearest
from sidequest.files import read_json
from sidequest.paths import input_file
from sidequest.settings import brief
from sidequest.tasks.readers.table import Table, plain_column

SAVED_DATASET, SAVED_DICT, STATE = "dataset_info.json", "dataset_dict.json", "state.json"


def is_saved_dataset(path: Path) -> bool:
    return (path / SAVED_DATASET).is_file() or (path / SAVED_DICT).is_file()


def saved_splits(path: Path) -> list[str]:
    """The names of the splits in a saved dataset dict; none for a single dataset."""
    file = path / SAVED_DICT
    if not file.is_file():
        return []
    found = read_json(file)
    names = found.get("splits") if isinstance(found, dict) else None
    if not isinstance(names, list) or not all(map(_is_inside, names)):
        raise DataError("`splits` is a list of the names of folders beside it", file=file)
    return names


def _is_inside(name: Any) -> bool:
    """Whether it is the name of something in the same folder."""
    return isinstance(name, str) and name not in ("", ".", "..") and Path(name).name == name


def _check_saved(path: Path) -> None:
    """What its JSON files say leads to nothing but the files beside them: a directory may come from anybody."""
    for folder in [path / name for name in saved_splits(path)] or [path]:
        for file in (folder / STATE, folder / SAVED_DATASET):
            found = read_json(input_file(file, "a file of a saved dataset"))
            if not isinstance(found, dict):
                raise DataError(f"an object is needed here, found {type(found).__name__}", file=file)
        parts = read_json(folder / STATE).get("_data_files")
        if not isinstance(parts, list) or not parts:
            raise DataError("`_data_files` is a list of files", file=folder / STATE)
        for part in parts:
            name = part.get("filename") if isinstance(part, dict) else None
            if not _is_inside(name):
                raise DataError(f"`_data_files` names files beside it, found {brief(name)}", file=folder / STATE)
            input_file(folder / str(name), "a file of a saved dataset")


def read_saved(path: Path, split: str | None = None) -> Table:
    """A directory written by `save_to_disk`: a dataset, or one split of a dataset dict."""
    if not is_saved_dataset(path):
        raise DataError("not a directory written by `save_to_disk` of Hugging Face datasets", file=path)
    datasets = _datasets()
    _check_saved(path)
    with _loading(path):
        loaded = datasets.load_from_disk(str(path))
    source = str(path)
    if isinstance(loaded, datasets.DatasetDict):
        if split is None:
            raise DataError(
                f"this holds the splits {sorted(loaded)}; say `saved: {path.name}` and name them in `train:` and `report:`",
                file=path,
            )
        if split not in loaded:
            raise DataError(f"there is no split {split!r}. {nearest(split, loaded)}", file=path)
        loaded, source = loaded[split], f"{path}[{split}]"
    elif split is not None:
        raise DataError(
            f"this is one dataset without splits, so there is no {split!r}; name it as a file: `train: {path.name}`",
            file=path,
        )
    with _loading(path):
        return dataset_table(loaded, source)


@contextmanager
def _loading(path: Path) -> Iterator[None]:
    """Around a library that reads files that others wrote: it may fail in any way."""
    try:
        yield
    except (SidequestError, MemoryError):
        raise
    except Exception as error:
        raise DataError(f"can't be loaded as a saved dataset: {first_line(error)}", file=path) from None


def _datasets() -> Any:
    """Only these readers need the package, so it is an extra."""
    try:
        import datasets
    except ImportError:
        raise DataError("reading this needs Hugging Face datasets: pip install 'sidequest[hub]'") from None
    return datasets


def read_hub(name: str, config: str | None, split: str, revision: str | None = None) -> Table:
    """A split of a dataset on the Hugging Face hub (or in its local cache)."""
    datasets = _datasets()

    source = f"hub:{name}" + (f"/{config}" if config else "") + f"[{split}]"
    hub_log = logging.getLogger("huggingface_hub")
    level = hub_log.level
    hub_log.setLevel(logging.ERROR)  # its warnings about every retry say less than the one error below
    try:
        loaded = datasets.load_dataset(name, config, split=split, revision=revision)
    except Exception as error:  # the hub client raises dozens of types for one fact: it can't be had
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise DataError(
            f"can't be loaded from the hub: {reason}. Without a network, give a local copy: `path:` for a catalog "
            "entry, `saved:` for a directory written by `save_to_disk`, or files",
            file=source,
        ) from None
    finally:
        hub_log.setLevel(level)
    return dataset_table(loaded, source)


def dataset_table(dataset: Any, source: str) -> Table:
    if not len(dataset):
        raise DataError("the dataset has no rows", file=source)
    table: pa.Table = dataset.with_format("arrow")[:]
    names: dict[str, tuple[str, ...]] = {}
    columns: dict[str, pa.Array] = {}
    for column in table.column_names:
        array = plain_column(table.column(column))
        classes = _class_names(dataset.features[column])
        if classes:
            names[column] = classes
            array = _named(array, classes)
        columns[column] = array
    return Table(columns, source, label_names=names)


def _class_names(feature: Any) -> tuple[str, ...]:
    inner = getattr(feature, "feature", feature)  # a sequence of class labels, as for tags
    return tuple(getattr(inner, "names", None) or ())


def _named(array: pa.Array, classes: tuple[str, ...]) -> pa.Array:
    """Class numbers as class names; a number outside the classes (the hub's -1 for "withheld") as null."""
    if pa.types.is_list(array.type):
        return pa.ListArray.from_arrays(array.offsets, _named(array.values, classes))
    index = np.asarray(pc.fill_null(array, -1), dtype=np.int64)
    valid = (index >= 0) & (index < len(classes))
    return pa.array(classes, type=pa.string()).take(pa.array(np.where(valid, index, 0), mask=~valid))
