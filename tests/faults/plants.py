"""What tests put into a command's process: faults that they must find, and a page that costs nothing to draw."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any


def plain_page() -> None:
    """A page and figures without drawing: no result rests on them, and they take most of a small run's time."""
    import sidequest.report.images
    import sidequest.report.page
    from sidequest.files import write_atomically

    def write_page(directory: Path) -> Path:
        sidequest.report.page.read_page.__doc__  # noqa: B018 - the module is whole
        write_atomically(directory / "report.html", b"page")
        return directory / "report.html"

    def save_figures(figures: Any, directory: Path, formats: Any) -> tuple[list[Path], list[str]]:
        for name in figures:
            write_atomically(directory / f"{name}.html", b"figure")
        return [], []

    sidequest.report.page.write_page = write_page
    sidequest.report.images.save_figures = save_figures


# Planted faults


def forgets_layout() -> None:
    """Optimiser states come back from disk with another memory layout than their parameters."""
    import torch

    from sidequest.learning.torch import learner, optimising

    def restore(optimizer: torch.optim.Optimizer, tensors: Any, prefix: str) -> None:
        parameters = optimising.parameters_of(optimizer)
        for name, tensor in tensors.items():
            if name.startswith(f"{prefix}."):
                _, index, key = name.split(".")
                optimizer.state[parameters[int(index)]][key] = tensor.clone().contiguous()

    learner.restore_optimizer = restore


def forgets_the_learner() -> None:
    """A checkpoint brings back the state of the method, and the learner stays as it began."""
    from sidequest.learning.torch.learner import TorchLearner

    TorchLearner.load = lambda self, directory: None  # type: ignore[method-assign]


def forgets_the_place() -> None:
    """A loaded learner begins its data again."""
    from sidequest.learning.torch.learner import TorchLearner

    load = TorchLearner.load

    def begin_again(self: TorchLearner, directory: Path) -> None:
        load(self, directory)
        self._stream_positions = {}
        self._streams.clear()

    TorchLearner.load = begin_again  # type: ignore[method-assign]


def writes_in_place() -> None:
    """Files are written under their own names, half of them at a time."""
    import sidequest.files

    @contextlib.contextmanager
    def in_place(path: Path) -> Iterator[IO[bytes]]:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            yield file
            file.flush()
            import os

            os.fsync(file.fileno())

    sidequest.files.atomic_file = in_place


def never_sweeps() -> None:
    """What killed writers left stays where it is."""
    import sidequest.files
    import sidequest.runs.holding

    sidequest.files.remove_parts = sidequest.files.remove_all_parts = lambda directory: None
    sidequest.runs.holding.remove_all_parts = lambda directory: None


def passes_over_a_full_disk() -> None:
    """What finds no room is not written, and nobody is told."""
    import io

    import sidequest.files

    atomic_file = sidequest.files.atomic_file

    @contextlib.contextmanager
    def careless(path: Path) -> Iterator[IO[bytes]]:
        with contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(atomic_file(path))
            except OSError:
                file = io.BytesIO()
            yield file

    sidequest.files.atomic_file = careless


# The world


def somebody_else() -> None:
    """Go on as a user without rights."""
    import os

    os.setgid(65534)
    os.setuid(65534)


def umask_022() -> None:
    import os

    os.umask(0o022)


def umask_077() -> None:
    import os

    os.umask(0o077)
