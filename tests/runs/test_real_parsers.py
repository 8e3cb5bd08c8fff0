"""Exports read by the trainers' own code. Each test is skipped where its trainer is not installed; docs/export.md says with which
versions they were seen, and how to see it again."""

import dataclasses
import json

import pytest
import yaml

from sidequest.recipe import Phase, Recipe
from sidequest.runs.exports import export_recipe
from sidequest.settings import TrainSettings
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Objective
from tests.runs.test_exports import RECIPE, SUITE, llama_factory_streaming, pairs

# Rows of one epoch of RECIPE by task: its shares are 1, 2 and 1, and its primary has ten rows.
EPOCH = {"main-one": 10, "more": 20, "tags": 10}


def package(name: str) -> None:
    pytest.importorskip(name, reason=f"{name.partition('.')[0]} is not installed")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """The files name each other relative to the export's directory, where the trainer is started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))


def test_trl_mixes_every_row(tmp_path):
    package("trl.scripts.utils")
    from trl.scripts.utils import DatasetConfig, DatasetMixtureConfig, get_dataset

    if "fraction" not in {field.name for field in dataclasses.fields(DatasetConfig)}:
        pytest.skip("this TRL has no fractions yet")
    export_recipe(RECIPE, SUITE, "trl", tmp_path)
    config = yaml.safe_load((tmp_path / "trl-phase-1.yaml").read_text())
    mixture = get_dataset(DatasetMixtureConfig(datasets=config["datasets"]))
    assert len(mixture["train"]) == sum(EPOCH.values())


def test_axolotl_takes_the_configuration_and_loads_every_row(tmp_path):
    package("axolotl.utils.data.shared")
    from axolotl.utils.data.shared import datasets_with_name_generator, load_dataset_with_config
    from axolotl.utils.dict import DictDefault
    from axolotl.utils.schemas.config import AxolotlInputConfig

    export_recipe(RECIPE, SUITE, "axolotl", tmp_path, TrainSettings(epochs=7))
    written = yaml.safe_load((tmp_path / "axolotl-phase-1.yaml").read_text())
    # What a recipe cannot know: the base model and the size of a device's batch.
    whole = written | {
        "base_model": "x",
        "learning_rate": 1e-4,
        "micro_batch_size": 1,
        "gradient_accumulation_steps": 1,
    }
    config = AxolotlInputConfig(**whole)
    assert (config.num_epochs, config.shuffle_merged_datasets) == (7, True)
    entries = list(datasets_with_name_generator(DictDefault(config.model_dump(exclude_none=True)).datasets))
    loaded = [load_dataset_with_config(entry, use_auth_token=False) for entry in entries]
    rows = [part.get("train", part) if isinstance(part, dict) else part for part in loaded]
    assert [len(part) for part in rows] == [*EPOCH.values()]
    assert {*rows[0].column_names} == {"instruction", "input", "output"}
    with pytest.raises(ValueError, match="shuffle_merged_datasets"):  # the check is one: a wrong value is refused
        AxolotlInputConfig(**whole | {"shuffle_merged_datasets": "sideways"})


def test_llama_factory_finds_the_files_and_mixes_every_row(tmp_path):
    package("llamafactory.data.parser")
    from llamafactory.data.data_utils import merge_dataset
    from llamafactory.data.loader import _load_single_dataset
    from llamafactory.data.parser import get_dataset_list
    from llamafactory.hparams import DataArguments, ModelArguments
    from transformers import Seq2SeqTrainingArguments

    export_recipe(RECIPE, SUITE, "llama-factory", tmp_path)
    written = yaml.safe_load((tmp_path / "llama-factory-phase-1.yaml").read_text())
    epochs = written.pop("num_train_epochs")
    settings = DataArguments(**written, template="alpaca")
    training = Seq2SeqTrainingArguments(output_dir=str(tmp_path / "out"), num_train_epochs=epochs, use_cpu=True)
    model = ModelArguments(model_name_or_path="x", cache_dir=str(tmp_path / "cache"))
    listed = get_dataset_list(settings.dataset, settings.dataset_dir)
    parts = [_load_single_dataset(entry, model, settings, training) for entry in listed]
    assert [len(part) for part in parts] == [*EPOCH.values()]
    prompt, response = parts[0][0]["_prompt"], parts[0][0]["_response"]
    assert "main-one says" in prompt[0]["content"]
    assert response[0]["content"] == "no"
    assert len(merge_dataset(parts, settings, seed=0)) == sum(EPOCH.values())
    streaming = DataArguments(**written | llama_factory_streaming(tmp_path), template="alpaca", max_samples=None)
    mixed = merge_dataset([part.to_iterable_dataset() for part in parts], streaming, seed=0)
    assert len(list(mixed)) >= sum(EPOCH.values())  # some rows come again until all files are through


def test_machamp_reads_every_row_and_its_own_parameters(tmp_path):
    package("machamp.model.trainer")
    from machamp.data.machamp_dataset_collection import MachampDatasetCollection
    from machamp.data.machamp_sampler import MachampBatchSampler
    from machamp.utils import myutils

    from sidequest.models.local_encoders import demo_directory

    export_recipe(RECIPE, SUITE, "machamp", tmp_path, TrainSettings(epochs=3, batch_size=4))
    parameters = myutils.load_json(str(tmp_path / "machamp-parameters-1.json"))
    config = myutils.merge_configs([str(tmp_path / "machamp-phase-1.json")], parameters)
    assert config["more"]["tasks"]["more"]["loss_weight"] == 0.5
    data = MachampDatasetCollection(str(demo_directory()), config)
    assert {name: len(part) for name, part in data.datasets.items()} == EPOCH
    batching = parameters["batching"]
    sampler = MachampBatchSampler(
        data,
        batching["batch_size"],
        batching["max_tokens"],
        batching["shuffle"],
        batching["sampling_smoothing"],
        batching["sort_by_size"],
        batching["diverse"],
        True,
    )
    drawn = [row[0] for batch in sampler for row in batch]
    assert {name: drawn.count(name) for name in EPOCH} == EPOCH
    assert parameters["training"]["num_epochs"] == 3


def test_sentence_transformers_draws_the_shares_in_batches(tmp_path):
    package("sentence_transformers")
    from datasets import load_dataset
    from sentence_transformers.base.sampler import ProportionalBatchSampler
    from torch import Generator
    from torch.utils.data import BatchSampler, ConcatDataset, SequentialSampler

    suite = Suite.of(pairs("near", 64, Objective.REGRESSION), [pairs("nli", 500, Objective.CLASSIFICATION)])
    recipe = Recipe(method="test", primary="near", phases=(Phase(shares={"near": 1, "nli": 3}),))
    export_recipe(recipe, suite, "sentence-transformers", tmp_path, TrainSettings(batch_size=16, epochs=4))
    (phase,) = json.loads((tmp_path / "training.json").read_text())["phases"]
    files = [str(tmp_path / entry["file"]) for entry in phase["datasets"].values()]
    parts = [load_dataset("json", data_files=file, split="train") for file in files]
    size = phase["per_device_train_batch_size"]
    samplers = [BatchSampler(SequentialSampler(part), size, drop_last=False) for part in parts]
    sampler = ProportionalBatchSampler(ConcatDataset(parts), samplers, generator=Generator(), seed=0)
    of_primary = [max(batch) < len(parts[0]) for batch in sampler]
    assert (sum(of_primary), len(of_primary)) == (4, 16)
