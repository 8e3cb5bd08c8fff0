"""A device that is not there: tensors that live apart from the CPU's, computed by the CPU underneath.

With `pretended_device()` open, "meta" behaves as a GPU does in what matters to an audit: `.to("meta")` moves values there,
an operation on tensors of both places is refused (but for numbers without dimensions, as torch allows), `numpy()` is refused, and
`.cpu()` moves values back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map

DEVICE = torch.device("meta")
COPIES = (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)


class Pretended(torch.Tensor):
    """`values` is the real tensor, on the CPU."""

    values: torch.Tensor

    @staticmethod
    def __new__(cls, values: torch.Tensor) -> Pretended:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            values.shape,
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            device=DEVICE,
            requires_grad=values.requires_grad,
        )
        made.values = values
        return made

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["values"], None

    @staticmethod
    def __tensor_unflatten__(parts: dict[str, torch.Tensor], _: None, size: Any, stride: Any) -> Pretended:
        return Pretended(parts["values"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})

    def tolist(self) -> Any:
        return self.values.tolist()

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Pretended({self.values!r})"


class _Factories(TorchDispatchMode):
    """Operations that name the device, such as `torch.ones(2, device="meta")`, come here before any tensor is there."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


@contextmanager
def pretended_device() -> Iterator[torch.device]:
    with _Factories():
        yield DEVICE


def _run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    flat = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
    there = [x for x in flat if isinstance(x, Pretended)]
    here = [x for x in flat if not isinstance(x, Pretended)]
    if there and any(x.ndim for x in here) and func not in COPIES and "_foreach" not in str(func):
        raise RuntimeError(f"{func}: expected all tensors to be on the same device, found {DEVICE} and cpu")
    target = kwargs.get("device")
    inner = {name: value for name, value in kwargs.items() if name != "device"}
    if target is not None and torch.device(target) != DEVICE:
        inner["device"] = target
    if target is None and func is torch.ops.aten.copy_.default:
        args[0].values.copy_(_plain(args[1])) if isinstance(args[0], Pretended) else args[0].copy_(_plain(args[1]))
        return args[0]
    out = func(*tree_map(_plain, args), **tree_map(_plain, inner))
    moved = torch.device(target) == DEVICE if target is not None else bool(there)
    if not moved:
        return out
    wrapped = tree_map(
        lambda x: Pretended(x) if isinstance(x, torch.Tensor) and not isinstance(x, Pretended) else x, out
    )
    return return_and_correct_aliasing(func, args, kwargs, wrapped) if there else wrapped


def _plain(value: Any) -> Any:
    return value.values if isinstance(value, Pretended) else value
