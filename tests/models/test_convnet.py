"""αVIL's network: the paper's sizes, any image size, bytes and floats."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sidequest.errors import DataError, SettingsError
from sidequest.model_settings import AlphaVILSettings, ConvnetSettings
from sidequest.models import family as make_family
from sidequest.models import load
from sidequest.models.base import Family
from sidequest.models.convnet import distorted
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task
from tests.helpers.sample_models import batch_of, make_task, stir


def image_task(shape, dtype=np.uint8, rows=6, name="images") -> Task:
    images = (np.random.default_rng(0).random((rows, *shape)) * (255 if dtype == np.uint8 else 1)).astype(dtype)
    splits = {"train": Examples({"image": images}, np.arange(rows) % 3, np.arange(rows))}
    return Task(name, Objective.CLASSIFICATION, Form.IMAGE, splits, ("a", "b", "c"))


def convnet(*tasks: Task, **settings) -> Family:
    return make_family(Suite.of(tasks[0], tasks[1:]), ConvnetSettings(**settings))


def test_the_papers_sizes_on_28_by_28():
    family = make_family(Suite.of(image_task((1, 28, 28))), AlphaVILSettings())
    model = family.build(0)
    assert (model.rotate, model.zoom, model.shift, model.dropout.p) == (0, 0, 0, 0)
    shapes = [tuple(parameter.shape) for name, parameter in model.named_parameters() if name.endswith("weight")]
    assert shapes == [(10, 1, 5, 5), (20, 10, 5, 5), (50, 320), (3, 50)]


@pytest.mark.parametrize("shape", [(1, 4, 4), (1, 8, 8), (3, 8, 16), (1, 15, 28), (1, 16, 16), (3, 33, 64)])
def test_any_size_from_4_by_4(shape):
    task = image_task(shape)
    family = convnet(task)
    assert family.build(0)("images", batch_of(family, task)).shape == (6, 3)


def test_smaller_images_are_refused():
    with pytest.raises(SettingsError, match="at least 4×4, found 3×9"):
        convnet(image_task((1, 3, 9))).build(0)


def test_bytes_are_divided_by_255_and_floats_taken_as_they_are():
    task = image_task((1, 8, 8))
    images = task.train.columns["image"]
    floats = Task(
        "images",
        task.objective,
        task.form,
        {"train": Examples({"image": images.astype(np.float32) / 255}, task.train.target, task.train.ids)},
        task.labels,
    )
    assert torch.allclose(batch_of(convnet(task), task)["image"], batch_of(convnet(floats), floats)["image"])


def test_export_and_predictions_for_classes_and_numbers(tmp_path):
    classes, ink = make_task("digit.1", Form.IMAGE), make_task("ink", Form.IMAGE, Objective.REGRESSION)
    family = convnet(classes, ink)
    model = stir(family.build(0))
    with torch.no_grad():
        probabilities = model("digit.1", batch_of(family, classes)).softmax(-1)
        values = family.scales["ink"].restore(model("ink", batch_of(family, ink)).numpy())
    for task in (classes, ink):
        family.export(model, task, tmp_path / task.name)
    assert np.allclose(load(tmp_path / "digit.1").predict(classes.train).probabilities, probabilities, atol=1e-6)
    assert np.allclose(load(tmp_path / "ink").predict(ink.train).values, values, atol=1e-4)


def test_a_model_does_not_depend_on_the_other_tasks():
    first, second = make_task("first", Form.IMAGE), make_task("second", Form.IMAGE)
    alone, among = convnet(second).build(1).state_dict(), convnet(first, second).build(1).state_dict()
    assert all(torch.equal(value, among[name]) for name, value in alone.items())


def test_images_of_different_shapes_are_refused():
    with pytest.raises(SettingsError, match=r"'images' has \(1, 8, 8\), 'other' has \(1, 9, 9\)"):
        convnet(image_task((1, 8, 8)), image_task((1, 9, 9), name="other"))


def test_images_without_channels_are_refused():
    task = image_task((8, 8))
    with pytest.raises(DataError, match=r"\[rows, channels, height, width\], found \(6, 8, 8\)"):
        convnet(task)


def test_images_are_distorted_in_training_only_and_by_the_learners_own_random_numbers():
    images = torch.zeros(50, 2, 9, 9)
    images[:, :, 4, 4] = torch.arange(1, 101).reshape(50, 2).float()
    torch.manual_seed(0)
    moved = distorted(images, 0, 0, 2)
    assert torch.allclose(moved.sum((2, 3)), images.sum((2, 3)))  # each image keeps its own pixel, in both channels
    places = {tuple(int(i) for i in (image[0] == image[0].max()).nonzero()[0]) for image in moved}
    assert places <= {(y, x) for y in range(2, 7) for x in range(2, 7)}
    assert len(places) > 10
    torch.manual_seed(0)
    assert torch.equal(distorted(images, 0, 0, 2), moved)
    family = convnet(image_task((1, 9, 9)), dropout=0.0)
    model, batch = family.build(0), batch_of(family, image_task((1, 9, 9)))
    assert torch.equal(model.eval()("images", batch), model.eval()("images", batch))
    assert not torch.equal(model.train()("images", batch), model.train()("images", batch))


def test_turned_and_zoomed_images_keep_their_proportions():
    """A bar in an image that is twice as wide as high: turned by 90 degrees it is as long and as thin as before."""
    image = torch.zeros(1, 1, 20, 40)
    image[:, :, 9:11, 14:26] = 1.0
    torch.manual_seed(0)
    unmoved = distorted(image, 0, 0, 0)
    assert torch.allclose(unmoved, image, atol=1e-6)
    turned = torch.cat([distorted(image, 180, 0, 0) for _ in range(40)])
    assert torch.allclose(turned.sum((1, 2, 3)), image.sum((1, 2, 3)).expand(40), rtol=0.05)
    heights = (turned.amax(3) > 0.5).sum(2)
    assert 2 <= int(heights.min()) <= 3
    assert 11 <= int(heights.max()) <= 13
    zoomed = torch.cat([distorted(image, 0, 0.5, 0) for _ in range(40)]).sum((1, 2, 3))
    assert zoomed.min() < 0.7 * image.sum()
    assert zoomed.max() > 1.5 * image.sum()
