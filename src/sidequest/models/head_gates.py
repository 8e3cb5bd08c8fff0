"""Gates on attention heads: a factor of one on each head's output, whose gradient is the head's importance.

Michel et al. (2019) put a variable ξ_h on the output of head h and take |∂L/∂ξ_h| at ξ = 1. Here each row of a batch has gates
of its own. A row's loss depends on no other row's gates, so one backward pass of the *summed* loss gives every row's gradient for
every head: no loop over batches of one is needed.

The gate multiplies the input of the attention layer's output projection, where the heads' outputs lie side by side; see
`PROJECTIONS` for where architectures keep it. Layers are counted by *application*: ALBERT runs one layer many times, and each
time is a layer of its own. Padding needs no care: no position that counts attends to it, so its gradient is zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from sidequest.errors import SettingsError

# Paths of the output projection within a module whose class name contains "Attention", first match wins.
PROJECTIONS = (
    "output.dense",  # BERT, RoBERTa, ELECTRA, DeBERTa, BEiT, DINOv2
    "out_lin",  # DistilBERT
    "dense",  # ALBERT
    "o",  # MPNet, T5
    "Wo",  # ModernBERT
    "o_proj",  # ViT
    "out_proj",  # CLIP, SigLIP, BART
)


class HeadGates:
    """The gates of one model while `open_gates` holds them open.

    Call order, per batch: `begin(rows)`, a forward pass, `gradients(summed loss)`.
    """

    def __init__(self, heads: int) -> None:
        self.heads = heads
        self._rows = 0
        self._owners: Tensor | None = None
        self._applied: list[Tensor] = []

    def begin(self, rows: int, owners: Tensor | None = None) -> None:
        """A batch of so many rows comes next.

        owners: int64 [texts], the row that each text of the batch belongs to, where rows have several (multiple choice). The
            texts of a row share its gates, so its gradient is the sum over them. None: one text per row.
        """
        self._rows, self._owners, self._applied = rows, owners, []

    def gradients(self, summed_loss: Tensor) -> Tensor:
        """∂L/∂ξ, float [rows, layers, heads], of the loss summed over rows."""
        if not self._applied:
            raise SettingsError("no attention layer ran in the forward pass, so there is no head to score")
        return torch.stack(torch.autograd.grad(summed_loss, self._applied), dim=1)

    def gate(self, _: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """The forward pre-hook of an output projection: inputs[0] is [texts, positions, heads · size]."""
        outputs = inputs[0]
        texts = self._rows if self._owners is None else len(self._owners)
        if outputs.ndim != 3 or len(outputs) != texts:
            raise SettingsError(
                f"the heads' outputs should have the shape [{texts}, positions, width], found {list(outputs.shape)}; "
                "an attention that joins the rows of a batch cannot be scored row by row"
            )
        # Half-precision gradients are too coarse to rank heads by.
        dtype = outputs.dtype if outputs.dtype.itemsize >= 4 else torch.float32
        gate = torch.ones(self._rows, self.heads, dtype=dtype, device=outputs.device, requires_grad=True)
        self._applied.append(gate)
        per_text = gate if self._owners is None else gate[self._owners]
        gated = outputs.unflatten(-1, (self.heads, -1)) * per_text[:, None, :, None]
        return (gated.flatten(-2).to(outputs.dtype), *inputs[1:])


@contextmanager
def open_gates(model: nn.Module) -> Iterator[HeadGates]:
    """Evaluation mode, gates on every attention layer, and nothing but the gates needs a gradient: the backward pass then
    computes no weight gradient and ends at the first layer. Everything is as before afterwards."""
    heads, projections = find_heads(model)
    gates = HeadGates(heads)
    training = model.training
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    hooks = [projection.register_forward_pre_hook(gates.gate) for projection in projections]
    try:
        model.eval()
        for parameter in learning:
            parameter.requires_grad_(False)
        yield gates
    finally:
        for hook in hooks:
            hook.remove()
        for parameter in learning:
            parameter.requires_grad_(True)
        model.train(training)


def find_heads(model: nn.Module) -> tuple[int, list[nn.Module]]:
    """How many heads a layer has, and the output projection of every attention module, in the order of the modules."""
    encoder = next((m for m in model.modules() if _heads(m) is not None), None)
    if encoder is None:
        raise SettingsError(
            f"head importance needs an attention encoder: {type(model).__name__} has no module whose `config` has "
            "`num_attention_heads`. Set model.kind to hf"
        )
    heads, found = _heads(encoder), {}
    assert heads is not None
    for module in encoder.modules():
        if "Attention" in type(module).__name__ and (projection := _projection(module)) is not None:
            found[id(projection)] = projection
    kind = getattr(encoder.config, "model_type", type(encoder).__name__)
    if not found:
        attention = sorted({type(m).__name__ for m in encoder.modules() if "Attention" in type(m).__name__})
        raise SettingsError(
            f"head importance does not know the architecture {kind!r}: looked in every module named *Attention* "
            f"({', '.join(attention) or 'there is none'}) for an output projection called {', '.join(PROJECTIONS)}, found none"
        )
    for projection in found.values():
        if projection.in_features % heads:
            raise SettingsError(
                f"architecture {kind!r}: the output projection takes {projection.in_features} numbers, which are not shared "
                f"equally by {heads} heads"
            )
    return heads, list(found.values())


def _heads(module: nn.Module) -> int | None:
    heads = getattr(getattr(module, "config", None), "num_attention_heads", None)
    return heads if isinstance(heads, int) else None


def _projection(module: nn.Module) -> Any:
    for path in PROJECTIONS:
        found: Any = module
        for name in path.split("."):
            found = getattr(found, name, None)
        if isinstance(found, nn.Module) and hasattr(found, "in_features"):  # a linear layer, or an adapter around one
            return found
    return None
