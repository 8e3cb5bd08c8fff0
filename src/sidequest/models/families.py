"""The kinds of models, by the name that `model.kind` gives them."""

from __future__ import annotations

from sidequest.models.base import Family
from sidequest.models.bilstm import BiLstmFamily
from sidequest.models.convnet import ConvFamily
from sidequest.models.custom import CustomFamily
from sidequest.models.hf import HfFamily
from sidequest.models.pooled import PooledFamily

FAMILIES: dict[str, type[Family]] = {
    "hf": HfFamily,
    "bilstm": BiLstmFamily,
    "pooled": PooledFamily,
    "convnet": ConvFamily,
    "custom": CustomFamily,
}
