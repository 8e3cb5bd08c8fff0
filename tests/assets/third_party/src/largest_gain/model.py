"""A kind of model in one file: one hidden layer over the pixels that all tasks share, and a linear head for each."""

from pathlib import Path
from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from sidequest.files import atomic_directory
from sidequest.model_settings import ModelSettings
from sidequest.models.base import Batch, Family, Inputs, MultiTaskModel, head_key, seeded
from sidequest.models.images import ImageInputs, Preparation, common_shape
from sidequest.models.saved import task_state, write_card, write_weights
from sidequest.tasks.examples import Examples
from sidequest.tasks.task import Form, Task


class PixelSettings(ModelSettings):
    """width: of the hidden layer."""

    kind: Literal["pixels"] = "pixels"
    width: int = Field(8, ge=1)


class PixelModel(MultiTaskModel):
    def __init__(self, tasks: list[Task], pixels: int, width: int, seed: int) -> None:
        super().__init__()
        with seeded(seed, "shared"):
            self.shared = nn.Linear(pixels, width)
        self.heads = nn.ModuleDict()
        for task in tasks:  # a head's values depend on the seed and the task's name, not on the other tasks
            with seeded(seed, "head", task.name):
                self.heads[head_key(task.name)] = nn.Linear(width, task.outputs)

    def forward(self, task: str, batch: Batch) -> Tensor:
        return self.heads[head_key(task)](self.shared(batch["image"].flatten(1)).relu())


class PixelFamily(Family):
    kind = "pixels"
    Settings = PixelSettings
    settings: PixelSettings
    forms = (Form.IMAGE,)

    def inputs(self, task: Task, examples: Examples) -> Inputs:
        return ImageInputs(task, examples, self.scales[task.name], Preparation(), "image")

    def build(self, seed: int) -> PixelModel:
        tasks = list(self.suite.tasks.values())
        channels, height, width = common_shape(tasks)
        return PixelModel(tasks, channels * height * width, self.settings.width, seed)

    def export(self, model: MultiTaskModel, task: Task, directory: Path) -> None:
        with atomic_directory(directory) as place:
            write_weights(place, task_state(model, task.name))
            write_card(place, task, self.settings, loads_with="sidequest.models.load")
