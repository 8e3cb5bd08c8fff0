"""The random state that a learner's dropout draws from, kept apart from the process's.

Dropout draws from torch's global generator of the device that it runs on: on a GPU that is the GPU's own, not the CPU's. Both are
lent this state while the learner trains and get their own back afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor

from sidequest.models.base import seed_of

States = dict[
    str, Tensor
]  # "random": of the CPU's generator; "random-device": of the accelerator's, where there is one
CPU, DEVICE = "random", "random-device"


class Processes(Protocol):
    rank: int
    size: int


class Randomness:
    def __init__(self, seed: int, device: torch.device) -> None:
        self.device = device
        self.states: States = {CPU: torch.Generator().manual_seed(seed_of(seed, "dropout")).get_state()}
        if _generators(device) is not None:
            own = torch.Generator(device).manual_seed(seed_of(seed, "dropout", "device"))
            self.states[DEVICE] = own.get_state()

    @contextmanager
    def lent(self, processes: Processes | None = None) -> Iterator[None]:
        """The global generators go on from this state inside, and from where they were afterwards.

        processes: that each train on other rows now, and so draw other masks. Afterwards all have one state again, which follows
        from the one before.
        """
        apart = processes is not None and processes.size > 1
        before = read_generators(self.device)
        write_generators(self.device, self._derived(processes.rank) if apart and processes is not None else self.states)
        try:
            yield
        finally:
            self.states = self._derived(-1) if apart else read_generators(self.device)
            write_generators(self.device, before)

    def _derived(self, number: int) -> States:
        """States that follow from these and a number."""
        drawn = torch.Generator()
        drawn.set_state(self.states[CPU])
        seed = int(torch.randint(2**62, (1,), generator=drawn)) + 7919 * (number + 1)
        states = {CPU: torch.Generator().manual_seed(seed).get_state()}
        if DEVICE in self.states:
            states[DEVICE] = torch.Generator(self.device).manual_seed(seed).get_state()
        return states

    def restore(self, states: Mapping[str, Tensor]) -> None:
        """Take over saved states. A state saved on another kind of device lacks this device's: that one stays as it is."""
        self.states |= {name: states[name].clone() for name in self.states if name in states}


def read_generators(device: torch.device) -> States:
    """The states of the global generators that a model on this device draws from."""
    states = {CPU: torch.get_rng_state()}
    if (module := _generators(device)) is not None:
        states[DEVICE] = module.get_rng_state(*_arguments(device))
    return states


def write_generators(device: torch.device, states: Mapping[str, Tensor]) -> None:
    torch.set_rng_state(states[CPU])
    if (module := _generators(device)) is not None:
        module.set_rng_state(states[DEVICE], *_arguments(device))


def _generators(device: torch.device) -> Any:
    """torch.cuda, torch.mps, …: the module with the device's generators; None for the CPU, whose state is always kept."""
    module = None if device.type == "cpu" else getattr(torch, device.type, None)
    return module if hasattr(module, "get_rng_state") else None


def _arguments(device: torch.device) -> tuple[torch.device, ...]:
    return () if device.type == "mps" else (device,)  # there is one mps device, and its functions take none
