"""Finding methods: ours by name, other packages' by entry point, a user's own by class, object or `file.py:Class`.

A package offers methods in its `pyproject.toml`, and `sidequest methods` lists them::

    [project.entry-points."sidequest.methods"]
    largest-gain = "my_package.methods:LargestGain"

`file.py:Class` runs a file. It is taken from what a user types or writes in Python, never from a suite, a recipe or a run
directory.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from sidequest.errors import SettingsError, nearest, unknown
from sidequest.methods.base import Method
from sidequest.paths import user_path, what_is_at
from sidequest.settings import Settings, parse

AnyMethod = Method[Any, Any]
MethodClass = type[AnyMethod]

GROUP = "sidequest.methods"

# name -> module:class, so that listing methods imports nothing heavy
METHODS: dict[str, str] = {
    "auto": "auto.auto:Auto",
    "single": "baselines:Single",
    "all": "baselines:All",
    "uniform": "baselines:Uniform",
    "size": "baselines:Size",
    "temperature": "baselines:Temperature",
    "random-subset": "baselines:RandomSubset",
    "heu-size": "gradts.heuristics:HeuSize",
    "heu-type": "gradts.heuristics:HeuType",
    "heu-len": "gradts.heuristics:HeuLen",
    "autosem": "autosem.autosem:AutoSeM",
    "autosem-p1": "autosem.autosem:AutoSeMP1",
    "autosem-no-stage1": "autosem.autosem:AutoSeMNoStage1",
    "autosem-grid": "autosem.autosem:AutoSeMGrid",
    "exp3s": "policies.exp3s:Exp3S",
    "counterfactual": "policies.counterfactual:Counterfactual",
    "alphavil": "alphavil.alphavil:AlphaVIL",
    "diw": "alphavil.diw:DIW",
    "gradts-thres": "gradts.gradts:GradTSThres",
    "gradts-trial": "gradts.gradts:GradTSTrial",
    "gradts-fg": "gradts.gradts:GradTSFg",
    "task-modelling": "surrogates.task_modelling:TaskModelling",
    "merge-to-mix": "surrogates.merge_to_mix:MergeToMix",
    "flad": "flad.flad:Flad",
    "similarity": "similarity.similarity:Similarity",
    "similarity-ce": "similarity.similarity:SimilarityCE",
    "random-data": "similarity.row_sampling:RandomData",
}


def plugins() -> dict[str, EntryPoint]:
    """Methods of other installed packages, by name. A name of ours stays ours."""
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in METHODS}


def method_names() -> list[str]:
    """The names of all methods: ours, then those of installed packages."""
    return [*METHODS, *sorted(plugins())]


def get_method(name: str) -> MethodClass:
    """The class of a method by name.

    Args:
        name: One of ours, or of an installed package's; see `method_names`.
    """
    if name in METHODS:
        module, _, cls = METHODS[name].partition(":")
        return getattr(importlib.import_module(f"sidequest.methods.{module}"), cls)
    offered = plugins()
    if name not in offered:
        raise unknown("method", name, [*METHODS, *offered])
    package = offered[name].dist
    where = f"method {name!r} of {'an installed package' if package is None else package.name}"
    try:
        loaded = offered[name].load()
    except Exception as error:  # another package's code may fail in any way
        raise SettingsError(f"{where} cannot be imported: {type(error).__name__}: {error}") from error
    method = checked(loaded, where)
    if method.name != name:
        raise SettingsError(f"{where}: its class calls itself {method.name!r}; use one name")
    return method


def from_file(reference: str) -> MethodClass:
    """The class that `file.py:Class` names; the file is run."""
    place, _, name = reference.rpartition(":")
    path = user_path(place, f"method {reference!r}").resolve()
    if what_is_at(path) != "file" or not name:
        raise SettingsError(
            f"method {reference!r}: file.py:Class is needed, found no {'class' if not name else 'such file'}"
        )
    # A name of its own per file, so that two files called method.py do not meet.
    module_name = f"sidequest_file_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise SettingsError(f"method {reference!r}: {path.name!r} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # annotations of settings and states are looked up there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # the user's code may fail in any way
        raise SettingsError(
            f"method {reference!r}: {path} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not hasattr(module, name):
        classes = [key for key, value in vars(module).items() if isinstance(value, type) and issubclass(value, Method)]
        raise SettingsError(f"method {reference!r}: {path} has no class {name!r}. {nearest(name, classes)}")
    return checked(getattr(module, name), f"method {reference!r}")


def checked(cls: Any, where: str) -> MethodClass:
    """A class that can be used as a method, or an error that says what it lacks."""
    if not isinstance(cls, type) or not issubclass(cls, Method):
        raise SettingsError(f"{where}: a method is a subclass of sidequest.Method, found {cls!r}")
    for name in ("name", "summary", "State"):
        if not hasattr(cls, name):
            raise SettingsError(f"{where}: {cls.__name__} has no `{name}`; see sidequest.methods.base")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", cls.name):
        raise SettingsError(
            f"{where}: `name` is small letters and digits with single hyphens between, found {cls.name!r}"
        )
    missing = sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        raise SettingsError(f"{where}: {cls.__name__} does not define {', '.join(missing)}")
    return cls


@dataclass(frozen=True)
class MethodChoice:
    """A method with its settings, as it travels to worker processes.

    source: a name, `file.py:Class`, or the class itself, which a worker imports from where it is defined.
    """

    source: str | MethodClass
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, method: MethodLike, settings: Mapping[str, Any] | Settings | None = None) -> MethodChoice:
        """From anything that a user may give; settings are checked now."""
        plain = _plain(settings, method)
        if isinstance(method, MethodChoice):
            return method if not plain else cls.of(method.source, {**method.settings, **plain})
        if isinstance(method, Method):
            if plain:
                raise SettingsError(f"method {method.name!r}: give its settings to the object or beside it, not both")
            choice = cls(checked(type(method), "method"), method.settings.model_dump())
        elif isinstance(method, str):
            choice = cls(method, plain)
        else:
            choice = cls(checked(method, "method"), plain)
        choice.make()
        return choice

    @property
    def method(self) -> MethodClass:
        if not isinstance(self.source, str):
            return self.source
        return from_file(self.source) if ":" in self.source else get_method(self.source)

    @property
    def name(self) -> str:
        if not isinstance(self.source, str):
            return self.source.name
        return self.source if self.source in METHODS else self.method.name

    @property
    def travels(self) -> bool:
        """Whether a worker process can import it: a class of a notebook or of a prompt exists in this process alone."""
        if isinstance(self.source, str) or self.source.__module__ != "__main__":
            return True
        return hasattr(sys.modules["__main__"], "__file__")

    def make(self, seed: int = 0) -> AnyMethod:
        """The method itself, its settings checked."""
        cls = self.method
        return cls(parse(cls.Settings, self.settings, f"method {cls.name!r}"), seed=seed)


# What a user may give: a name, `file.py:Class`, a class, or an object with its settings
MethodLike = str | MethodClass | AnyMethod | MethodChoice
Methods = Mapping[str, Mapping[str, Any] | Settings] | Sequence[MethodLike]


def choices_of(methods: Methods) -> dict[str, MethodChoice]:
    """What was asked for, by the methods' names: each is found and its settings are checked."""
    if isinstance(methods, str) or not isinstance(methods, Mapping | Sequence):
        raise SettingsError(f"methods: a list of names, classes or objects, or settings by name; found {methods!r}")
    if isinstance(methods, Mapping):
        choices = [MethodChoice.of(name, settings) for name, settings in methods.items()]
    else:
        choices = [MethodChoice.of(method) for method in methods]
    named: dict[str, MethodChoice] = {}
    for choice in choices:
        if choice.name in named and named[choice.name] != choice:
            raise SettingsError(
                f"method {choice.name!r} is asked for twice with different settings; compare them in two calls"
            )
        named[choice.name] = choice
    return named


def _plain(settings: Mapping[str, Any] | Settings | None, method: object) -> dict[str, Any]:
    if settings is None:
        return {}
    if isinstance(settings, Settings):
        return settings.model_dump(exclude_unset=True)
    if isinstance(settings, Mapping):
        return dict(settings)
    raise SettingsError(
        f"settings of method {method!r}: a dictionary or a settings object, found {type(settings).__name__}"
    )
