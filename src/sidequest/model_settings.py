"""Which model learns: a class of settings for each kind of model, told apart by `kind`. No torch here.

Another installed package adds a kind by an entry point: a subclass of `sidequest.models.base.Family` whose `Settings` is a
subclass of `ModelSettings`::

    [project.entry-points."sidequest.models"]
    bag = "my_package.models:BagFamily"
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SerializeAsAny

from sidequest.errors import SettingsError, nearest, unknown
from sidequest.settings import Settings, parse

GROUP = "sidequest.models"
MOST_UNITS = 2**16
Channels = Annotated[int, Field(ge=1, le=4096)]
AUTO = "auto"  # in a suite file or on the command line: `convnet` for a suite of images, else `hf`


class ModelSettings(Settings):
    """Base of the settings of all kinds of models.

    kind: the name of the kind.
    """

    kind: str


class EncoderSettings(ModelSettings):
    """Of models over a pretrained encoder.

    encoder: a directory, a hub name, or `minilm` for the encoder of the `demo` extra.
    max_length: tokens that are read of a text; what is longer is cut.
    """

    encoder: str = "minilm"
    max_length: int = Field(128, ge=8, le=10**6)


class LoraSettings(Settings):
    """Low-rank adapters through `peft` (extra `peft`).

    r: the rank.
    alpha: the factor on an update, divided by the rank.
    dropout: on the adapters' inputs.
    targets: names of the modules that get an adapter; None: those that `peft` knows for the architecture.
    """

    r: int = Field(8, ge=1, le=4096)
    alpha: int = Field(16, ge=1, le=10**6)
    dropout: float = Field(0.0, ge=0, lt=1)
    targets: tuple[str, ...] | None = None


class HfSettings(EncoderSettings):
    """A Hugging Face encoder, fine-tuned.

    layers: how many encoder layers to keep; None: all.
    freeze: how many of them (with the embeddings, if at least 1) stay as they were pretrained.
    pooling: what a head reads: `native` as the architecture has it, or the `mean` of the last states; `auto` is `mean` where the
        encoder was trained for it (sentence-transformers), else `native`.
    pairing: two texts as one sequence (`cross`) or each by itself (`bi`); the head then reads u, v, u⋆v, |u − v| and their
        cosine.
    start: heads start at the regularised read-out of the untouched encoder, or at `random`; `auto` is `random` for tags, whose
        read-outs have learned the words of few sentences by heart, else `readout`.
    precision: of training; `auto` is bfloat16 where the device computes in it, evaluation is always float32.
    dropout: None: the encoder's own.
    lora: train low-rank adapters instead of the encoder: `r`, `alpha`, `dropout`, `targets`.
    """

    kind: Literal["hf"] = "hf"
    layers: int | None = Field(None, ge=1)
    freeze: int = Field(0, ge=0)
    pooling: Literal["auto", "native", "mean"] = "auto"
    pairing: Literal["auto", "cross", "bi"] = "auto"
    start: Literal["auto", "readout", "random"] = "auto"
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    dropout: float | None = Field(None, ge=0, lt=1)
    lora: LoraSettings | None = None


class BiLstmSettings(EncoderSettings):
    """A BiLSTM over the frozen, cached token states of an encoder.

    layers: how many of the last layers' states are read; None: all.
    precision: of encoding; `auto` is float32.
    hidden: units of each direction.
    depth: BiLSTM layers.
    dropout: on their inputs and outputs.
    """

    kind: Literal["bilstm"] = "bilstm"
    layers: int | None = Field(None, ge=1)
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    hidden: int = Field(128, ge=1, le=MOST_UNITS)
    depth: int = Field(1, ge=1, le=64)
    dropout: float = Field(0.5, ge=0, lt=1)


class AutosemSettings(EncoderSettings):
    """The BiLSTM of Guo et al. (2019) over the frozen, cached token states of an encoder; settings as those of `bilstm`.

    layers: how many of the last layers' states are read; None: all.
    precision: of encoding; `auto` is float32.
    hidden: units of each direction.
    depth: BiLSTM layers.
    dropout: on their inputs and outputs.
    """

    kind: Literal["autosem"] = "autosem"
    layers: int | None = Field(None, ge=1)
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    hidden: int = Field(256, ge=1, le=MOST_UNITS)
    depth: int = Field(1, ge=1, le=64)
    dropout: float = Field(0.2, ge=0, lt=1)


class PooledSettings(EncoderSettings):
    """A linear read-out of the frozen, cached sentence vectors of an encoder, and a small shared network beside it.

    layers: of how many of the last layers; None: all.
    precision: of encoding; `auto` is float32.
    hidden: units of the shared network.
    depth: its layers.
    dropout: in it.
    """

    kind: Literal["pooled"] = "pooled"
    layers: int | None = Field(None, ge=1)
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    hidden: int = Field(128, ge=1, le=MOST_UNITS)
    depth: int = Field(1, ge=1, le=64)
    dropout: float = Field(0.5, ge=0, lt=1)


class ConvnetSettings(ModelSettings):
    """A small convolutional network for images.

    channels: of its two convolutions.
    hidden: units between them and the heads.
    dropout: before and after these.
    rotate: each image is turned by up to this many degrees in training.
    zoom: it is made larger or smaller by up to this part.
    shift: it is moved by up to this many pixels in each direction.
    """

    kind: Literal["convnet"] = "convnet"
    channels: tuple[Channels, Channels] = (16, 32)
    hidden: int = Field(128, ge=1, le=MOST_UNITS)
    dropout: float = Field(0.3, ge=0, lt=1)
    rotate: float = Field(15.0, ge=0, le=180)
    zoom: float = Field(0.15, ge=0, lt=1)
    shift: float = Field(1.5, ge=0, le=64)


class AlphaVILSettings(ModelSettings):
    """The convolutional network of Kourdis et al. (2020) for images; settings as those of `convnet`.

    channels: of its two convolutions.
    hidden: units between them and the heads.
    dropout: before and after these.
    rotate: each image is turned by up to this many degrees in training.
    zoom: it is made larger or smaller by up to this part.
    shift: it is moved by up to this many pixels in each direction.
    """

    kind: Literal["alphavil"] = "alphavil"
    channels: tuple[Channels, Channels] = (10, 20)
    hidden: int = Field(50, ge=1, le=MOST_UNITS)
    dropout: float = Field(0.0, ge=0, lt=1)
    rotate: float = Field(0.0, ge=0, le=180)
    zoom: float = Field(0.0, ge=0, lt=1)
    shift: float = Field(0.0, ge=0, le=64)


class CustomSettings(EncoderSettings):
    """A user's own module.

    factory: what builds it, `file.py:function` or `package.module:function`.
    encoder: whose tokeniser reads texts.
    """

    kind: Literal["custom"] = "custom"
    factory: str | None = None


KIND_SETTINGS: dict[str, type[ModelSettings]] = {
    "hf": HfSettings,
    "bilstm": BiLstmSettings,
    "autosem": AutosemSettings,
    "pooled": PooledSettings,
    "convnet": ConvnetSettings,
    "alphavil": AlphaVILSettings,
    "custom": CustomSettings,
}


def plugins() -> dict[str, EntryPoint]:
    """Families of other installed packages, by kind. A kind of ours stays ours."""
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in KIND_SETTINGS}


def load_plugin(kind: str) -> Any:
    """The family of another package; an error that names it if it cannot be used."""
    offered = plugins()
    if kind not in offered:
        raise unknown("model kind", kind, [*KIND_SETTINGS, *offered])
    package = offered[kind].dist
    where = f"model.kind={kind} of {'an installed package' if package is None else package.name}"
    try:
        family = offered[kind].load()
    except Exception as error:  # another package's code may fail in any way
        raise SettingsError(f"{where} cannot be imported: {type(error).__name__}: {error}") from error
    settings = getattr(family, "Settings", None)
    if not isinstance(settings, type) or not issubclass(settings, ModelSettings):
        raise SettingsError(f"{where}: its `Settings` is a subclass of sidequest.ModelSettings, found {settings!r}")
    if getattr(family, "kind", None) != kind:
        raise SettingsError(f"{where}: its class calls itself {getattr(family, 'kind', None)!r}; use one name")
    return family


def settings_class(kind: str) -> type[ModelSettings]:
    return KIND_SETTINGS[kind] if kind in KIND_SETTINGS else load_plugin(kind).Settings


def model_settings(values: Mapping[str, Any], where: str = "model") -> ModelSettings:
    """The settings of the kind that `values` names."""
    kind = values.get("kind")
    if not isinstance(kind, str):
        raise SettingsError(f"{where}: kind: the name of a kind of model, found {kind!r}")
    if kind not in KIND_SETTINGS and kind not in plugins():
        raise SettingsError(f"{where}: kind: {unknown('model kind', kind, [*KIND_SETTINGS, *plugins()])}")
    cls = settings_class(kind)
    if kind in KIND_SETTINGS:
        values = _without_former(cls, values)
        elsewhere = {name for other in KIND_SETTINGS.values() for name in other.model_fields}
        for name in values:
            if name not in cls.model_fields and name in elsewhere:
                fields = ", ".join(sorted({*cls.model_fields} - {"kind"}))
                raise SettingsError(f"{where}: {name} has no effect on model.kind={kind}, which takes {fields}")
    return parse(cls, values, where)


# sidequest 0.1 had one class for all kinds and wrote every field of it: what has no meaning for a kind is left out.
_FORMER: dict[str, tuple[Any, ...]] = {
    "encoder": ("minilm",),
    "factory": (None,),
    "max_length": (128,),
    "layers": (None,),
    "freeze": (0,),
    "pooling": ("native",),
    "precision": ("auto", "fp32"),
    "hidden": (None,),
    "depth": (None,),
    "dropout": (None,),
    "lora": (None,),
}


def _without_former(cls: type[ModelSettings], values: Mapping[str, Any]) -> dict[str, Any]:
    def is_former(name: str) -> bool:
        if values[name] not in _FORMER.get(name, ()):
            return False
        field = cls.model_fields.get(name)
        return field is None or (values[name] is None and field.default is not None)

    return {name: value for name, value in values.items() if not is_former(name)}


def check_section(values: Mapping[str, Any], where: str) -> None:
    """Refuse the `model:` section of a suite file that no kind could take; which kind `auto` is depends on the tasks."""
    kind = values.get("kind", AUTO)
    if kind != AUTO:
        model_settings(values, where)
        return
    given = {name: value for name, value in values.items() if name != "kind"}
    able = [cls for cls in (HfSettings, ConvnetSettings) if {*given} <= {*cls.model_fields}]
    if able:
        parse(able[0], given, where)
        return
    known = {*HfSettings.model_fields, *ConvnetSettings.model_fields}
    for name in given:
        if name not in known:
            others = {other for cls in KIND_SETTINGS.values() for other in cls.model_fields}
            hint = "say which kind it is for, with `kind:`" if name in others else nearest(name, others)
            raise SettingsError(f"{where}: unknown setting {name!r}. {hint}")


def _dispatch(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    try:
        return model_settings(value)
    except SettingsError as error:
        raise ValueError(str(error)) from None


# In a record: read as the class that `kind` names, written with all the fields of that class.
AnyModelSettings = Annotated[SerializeAsAny[ModelSettings], BeforeValidator(_dispatch)]
