"""Native heads on one shared base: really shared, independent of each other, and exported so that plain transformers agrees."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import torch
import transformers

from sidequest.errors import DataError, SettingsError
from sidequest.model_settings import HfSettings, LoraSettings
from sidequest.models import load
from sidequest.models.base import CHAINS, IGNORE
from sidequest.models.hf import HfFamily
from sidequest.models.native import auto_class
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task
from tests.helpers.marks import slow_but
from tests.helpers.sample_models import TEXT_ARCHITECTURES, batch_of, make_encoder, make_task, stir

# One of each manner: absolute positions, other positions and their own kind of attention; the slow tier has all.
QUICK = ("bert", "deberta-v2", "modernbert")
TASKS = {
    "one": make_task("one"),
    "two.texts": make_task("two.texts", Form.PAIR),
    "several": make_task("several", Form.TEXT, Objective.MULTILABEL),
    "number": make_task("number", Form.PAIR, Objective.REGRESSION),
    "tags": make_task("tags", Form.TOKENS),
    "keys": make_task("keys", Form.CHOICES),  # the name of a method of ModuleDict
}


def family_of(encoder, names=tuple(TASKS), **settings) -> HfFamily:
    tasks = [TASKS[name] for name in names]
    return HfFamily(Suite.of(tasks[0], tasks[1:]), HfSettings(encoder=str(encoder), **settings))


def plain_logits(directory, task: Task) -> torch.Tensor:
    """What a user of transformers gets from an export: its own tokeniser, its own classes, nothing of sidequest."""
    model, report = getattr(transformers, auto_class(task)).from_pretrained(directory, output_loading_info=True)
    assert not any(report.values()), report
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    columns = {name: column.to_pylist() for name, column in task.train.columns.items()}
    if task.form == Form.TOKENS:
        inputs = tokenizer(columns["tokens"], is_split_into_words=True, padding=True, return_tensors="pt")
    else:
        inputs = tokenizer(*columns.values(), padding=True, return_tensors="pt")
    with torch.no_grad():
        return model(**inputs).logits


@pytest.mark.parametrize("architecture", slow_but(TEXT_ARCHITECTURES, *QUICK))
def test_an_export_gives_the_same_logits_in_plain_transformers(architecture, encoders, tmp_path):
    family = family_of(encoders(architecture))
    model = stir(family.build(0))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for name in ("one", "several", "two.texts", "number", "tags"):
        task = TASKS[name]
        batch = batch_of(family, task)
        with torch.no_grad():
            live = model(name, batch)
        family.export(model, task, tmp_path / name)
        plain = plain_logits(tmp_path / name, task)
        if name == "number":
            live = torch.from_numpy(family.scales[name].restore(live.numpy()))[:, None]  # original units: 50 ± 20
            assert live.std() > 0.1
            assert torch.allclose(plain.double(), live, atol=1e-4)
            continue
        inside = batch["attention_mask"].bool() if name == "tags" else slice(None)
        assert live[inside].std() > 0.01
        assert (plain - live)[inside].abs().max() < 1e-5
    after = model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before), "an export must not change the live model"


@pytest.mark.parametrize("architecture", slow_but(TEXT_ARCHITECTURES, *QUICK))
def test_the_base_is_shared_and_held_once(architecture, encoders):
    model = family_of(encoders(architecture)).build(0)
    ids = {id(parameter) for parameter in model.base.parameters()}
    for native in model.natives.values():
        assert getattr(native, native.base_model_prefix) is model.base
        assert ids <= {id(parameter) for parameter in native.parameters()}
    assert len(list(model.parameters())) == len([name for name in model.state_dict() if not name.startswith(CHAINS)])
    assert not any(parameter.is_meta for parameter in model.parameters())
    moved = model.to(torch.float64)
    assert all(p.dtype == torch.float64 for native in moved.natives.values() for p in native.parameters())


@pytest.mark.parametrize("architecture", slow_but(("bert", "roberta", "modernbert"), "bert"))
@pytest.mark.parametrize("start", ["random", "readout"])
def test_a_head_depends_on_seed_and_task_alone(architecture, start, encoders):
    alone = family_of(encoders(architecture), ("one",), start=start).build(5)
    among = family_of(encoders(architecture), ("tags", "one", "keys"), start=start).build(5)
    torch.manual_seed(99)
    again = family_of(encoders(architecture), ("one",), start=start).build(5)
    other = family_of(encoders(architecture), ("one",), start=start).build(6)
    key = "task:one"
    head, same, third = (dict(m.heads[key].named_parameters()) for m in (alone, among, again))
    assert all(torch.equal(head[name], same[name]) and torch.equal(head[name], third[name]) for name in head)
    drawn = start == "random" or architecture != "bert"  # BERT's head is one layer, and a read-out knows no seed
    assert drawn == any(not torch.equal(head[name], value) for name, value in other.heads[key].named_parameters())
    base = dict(among.base.named_parameters())
    assert all(torch.equal(value, base[name]) for name, value in alone.base.named_parameters())


def test_tags_start_at_random_and_other_heads_at_their_read_out(encoders):
    heads = {
        start: family_of(encoders(), ("one", "tags"), start=start).build(5).heads
        for start in ("auto", "random", "readout")
    }
    for key, expected, other in (("task:one", "readout", "random"), ("task:tags", "random", "readout")):
        state = heads["auto"][key].state_dict()
        assert all(torch.equal(value, heads[expected][key].state_dict()[name]) for name, value in state.items())
        assert any(not torch.equal(value, heads[other][key].state_dict()[name]) for name, value in state.items())


def test_building_leaves_the_global_random_state_alone(encoders):
    family = family_of(encoders())
    before = torch.random.get_rng_state()
    family.build(0)
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("architecture", slow_but(TEXT_ARCHITECTURES, *QUICK))
def test_results_do_not_depend_on_padding(architecture, encoders):
    family = family_of(encoders(architecture))
    model = stir(family.build(0))
    for name, task in TASKS.items():
        lengths = family.inputs(task, task.train).lengths
        row = int(lengths.argmin())
        others = [i for i in range(len(task.train)) if i != row]
        with torch.no_grad():
            alone, among = (model(name, batch_of(family, task, [row, *rest])) for rest in ([], others))
        if name == "tags":
            among = among[:, : int(lengths[row])]
        if name == "keys":
            among = among[:, : alone.shape[1]]
        assert torch.allclose(alone[0], among[0], atol=2e-5)


def test_multiple_choice_is_the_native_score_of_each_pair(encoders, tmp_path):
    rows = pa.array([["the cat", "a dog ran"], ["it is slow", "it runs"], ["very good", "bad film"]])
    columns = {"text": pa.array(["it sat", "the dog", "a film"]), "choices": rows}
    task = Task(
        "copa", Objective.CHOICE, Form.CHOICES, {"train": Examples(columns, np.zeros(3, np.int64), np.arange(3))}
    )
    family = HfFamily(Suite.of(task), HfSettings(encoder=str(encoders())))
    model = stir(family.build(0))
    family.export(model, task, tmp_path / "m")
    plain = transformers.AutoModelForMultipleChoice.from_pretrained(tmp_path / "m")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "m")
    first = [text for text in columns["text"].to_pylist() for _ in range(2)]
    inputs = tokenizer(first, rows.flatten().to_pylist(), padding=True, return_tensors="pt")
    with torch.no_grad():
        theirs = plain(**{name: value.view(3, 2, -1) for name, value in inputs.items()}).logits
        ours = model("copa", batch_of(family, task))
    assert torch.allclose(theirs, ours, atol=1e-6)


def test_rows_may_have_different_numbers_of_choices(encoders):
    family = family_of(encoders(), ("keys",))
    counts = np.array([len(row) for row in TASKS["keys"].train.columns["choices"].to_pylist()])
    assert len(set(counts)) > 1
    logits = family.build(0).eval()("keys", batch_of(family, TASKS["keys"]))
    share = logits.softmax(-1)
    for row, count in zip(share, counts, strict=True):
        assert torch.all(row[count:] == 0)
        assert torch.all(row[:count] > 0)
    logits.softmax(-1)[:, 0].sum().backward()  # absent choices bring no NaN into the gradient


def test_vit_export_round_trip(encoders, tmp_path):
    classes = make_task("digit", Form.IMAGE)
    ink = make_task("ink", Form.IMAGE, Objective.REGRESSION)
    family = HfFamily(Suite.of(classes, [ink]), HfSettings(encoder=str(encoders("vit"))))
    model = stir(family.build(0))
    assert all(native.vit is model.base for native in model.natives.values())
    pixels = torch.from_numpy(np.asarray(classes.train.columns["image"])).float() / 255
    resized = torch.nn.functional.interpolate(pixels, (16, 16), mode="bilinear", antialias=True).repeat(1, 3, 1, 1)
    for task in (classes, ink):
        with torch.no_grad():
            live = model(task.name, batch_of(family, task))
        family.export(model, task, tmp_path / task.name)
        plain, report = transformers.AutoModelForImageClassification.from_pretrained(
            tmp_path / task.name, output_loading_info=True
        )
        assert not any(report.values())
        images = torch.from_numpy(np.asarray(task.train.columns["image"])).float() / 255
        resized = torch.nn.functional.interpolate(images, (16, 16), mode="bilinear", antialias=True).repeat(1, 3, 1, 1)
        with torch.no_grad():
            theirs = plain(pixel_values=(resized - 0.5) / 0.5).logits
        if task is ink:
            live = torch.from_numpy(family.scales["ink"].restore(live.numpy()))[:, None].float()
        assert torch.allclose(theirs, live, atol=1e-4 if task is ink else 1e-5)
        found = load(tmp_path / task.name).predict(task.train)
        expected = live[:, 0] if task is ink else live.softmax(-1)
        assert np.allclose(found.values if task is ink else found.probabilities, expected, atol=1e-4)


def test_labels_are_written_by_name(encoders, tmp_path):
    family = family_of(encoders(), ("one",))
    family.export(family.build(0), TASKS["one"], tmp_path / "m")
    config = transformers.AutoConfig.from_pretrained(tmp_path / "m")
    assert config.id2label == {0: "no", 1: "yes", 2: "maybe"}
    assert config.label2id == {"no": 0, "yes": 1, "maybe": 2}


def test_a_pooler_that_the_weights_lack_is_drawn_from_the_seed(tmp_path):
    directory = make_encoder(tmp_path / "e")
    model = transformers.BertModel.from_pretrained(directory, add_pooling_layer=False)
    model.save_pretrained(directory)
    family = family_of(directory, ("one",))
    pooler = [family.build(seed).base.pooler.dense.weight for seed in (0, 0, 1)]
    assert torch.equal(pooler[0], pooler[1])
    assert not torch.equal(pooler[0], pooler[2])
    assert family_of(directory, ("tags",)).build(0).base.pooler is None, "nobody uses it, so nobody carries it"


def test_weights_that_do_not_fit_are_refused(tmp_path):
    directory = make_encoder(tmp_path / "e")
    config = transformers.AutoConfig.from_pretrained(directory)
    config.num_hidden_layers = 5
    config.save_pretrained(directory)
    with pytest.raises(SettingsError, match=r"do not fit.*layer\.3"):
        family_of(directory, ("one",)).build(0)


class TestTagging:
    def test_labels_stand_on_the_first_sub_token_of_each_word(self, encoders):
        columns = {"tokens": pa.array([["the", "zebra", "sat"], ["cat"]])}
        target = pa.array([[2, 0, 1], [1]], type=pa.list_(pa.int64()))
        task = Task(
            "t", Objective.TAGGING, Form.TOKENS, {"train": Examples(columns, target, np.arange(2))}, ("a", "b", "c")
        )
        family = HfFamily(Suite.of(task), HfSettings(encoder=str(encoders())))
        batch = batch_of(family, task)
        skip = IGNORE  # <s> the z ##e ##b ##r ##a sat </s>
        assert batch["labels"].tolist() == [
            [skip, 2, 0, skip, skip, skip, skip, 1, skip],
            [skip, 1, skip, skip, skip, skip, skip, skip, skip],
        ]
        assert torch.equal(batch["words"], batch["labels"] != skip)

    def test_max_length_cuts_texts_but_no_tagged_sentence(self, encoders):
        long = Task("l", Objective.TAGGING, Form.TOKENS, {"train": _words(40)}, ("a",))
        text = Task(
            "t",
            Objective.CLASSIFICATION,
            Form.TEXT,
            {"train": Examples({"text": pa.array(["cat " * 40])}, np.zeros(1, np.int64), np.arange(1))},
            ("a", "b"),
        )
        settings = HfSettings(encoder=str(encoders()), max_length=10)
        family = HfFamily(Suite.of(text, [long]), settings)
        assert family.inputs(text, text.train).lengths.tolist() == [10]
        assert family.inputs(long, long.train).lengths.tolist() == [42]

    @pytest.mark.parametrize(
        ("architecture", "limit"), [("bert", 160), ("mpnet", 158)]
    )  # MPNet counts positions from 2
    def test_a_sentence_beyond_the_encoder_is_refused(self, architecture, limit, encoders):
        fits, beyond = (
            Task("t", Objective.TAGGING, Form.TOKENS, {"train": _words(n)}, ("a",)) for n in (limit - 2, limit - 1)
        )
        family = HfFamily(Suite.of(fits), HfSettings(encoder=str(encoders(architecture))))
        with torch.no_grad():
            family.build(0)("t", batch_of(family, fits))  # the longest allowed does run
        with pytest.raises(DataError, match=f"{limit - 1} words.*takes {limit}.*split it"):
            family.inputs(beyond, beyond.train)

    @pytest.mark.parametrize("architecture", ["bert", "roberta"])
    def test_every_word_keeps_a_position(self, architecture, encoders):
        rows = [["the", "\u200b", "cat", "", "\x00"], ["a"]]  # characters that a tokeniser drops
        task = Task("t", Objective.TAGGING, Form.TOKENS, {"train": _tagged(rows)}, ("a",))
        family = HfFamily(Suite.of(task), HfSettings(encoder=str(encoders(architecture))))
        assert batch_of(family, task)["words"].sum(1).tolist() == [5, 1]

    def test_byte_level_words_get_their_space(self, encoders):
        family = family_of(encoders("roberta"), ("tags", "one"))
        inside = family.word_tokeniser(["the", "cat"], is_split_into_words=True)["input_ids"]
        assert inside == family.tokeniser(" the cat")["input_ids"]


class TestOptions:
    @pytest.mark.parametrize("architecture", slow_but(("bert", "distilbert", "albert", "modernbert"), "bert", "albert"))
    def test_layers_keeps_the_first_ones(self, architecture, encoders, tmp_path):
        whole, cut = family_of(encoders(architecture), ("one",)), family_of(encoders(architecture), ("one",), layers=2)
        batch = {name: value for name, value in batch_of(cut, TASKS["one"]).items() if name != "labels"}
        with torch.no_grad():
            expected = whole.build(0).eval().base(**batch, output_hidden_states=True).hidden_states[2]
            found = cut.build(0).eval().base(**batch, output_hidden_states=True).hidden_states[2]
            if architecture == "modernbert":  # its last state has passed the final norm
                expected = whole.build(0).base.final_norm(expected)
        assert torch.allclose(expected, found, atol=1e-5)
        model = stir(cut.build(0))
        cut.export(model, TASKS["one"], tmp_path / "m")
        with torch.no_grad():
            assert (plain_logits(tmp_path / "m", TASKS["one"]) - model("one", batch)).abs().max() < 1e-5

    def test_too_many_layers_are_refused(self, encoders):
        with pytest.raises(SettingsError, match="has 3 layers"):
            family_of(encoders(), ("one",), layers=4)

    @pytest.mark.parametrize(
        "architecture", slow_but((name for name in TEXT_ARCHITECTURES if name != "albert"), *QUICK)
    )
    @pytest.mark.parametrize("count", [1, 3])
    def test_frozen_layers_get_no_gradient(self, architecture, count, encoders):
        family = family_of(encoders(architecture), ("one",), freeze=count)
        model = family.build(0)
        model("one", batch_of(family, TASKS["one"])).square().sum().backward()
        moving = {name for name, parameter in model.base.named_parameters() if parameter.grad is not None}
        assert not any("embeddings.word" in name or "tok_embeddings" in name for name in moving)
        assert all(parameter.grad is not None for parameter in model.heads.parameters())
        if count == 3:
            assert all(name.startswith("pooler") for name in moving)
        else:
            assert any(".2." in name for name in moving)

    @pytest.mark.parametrize("architecture", slow_but(("bert", "electra", "mpnet", "deberta-v2", "modernbert"), *QUICK))
    def test_states_of_frozen_layers_never_change(self, architecture, encoders):
        family = family_of(encoders(architecture), ("one",), freeze=2, dropout=0.0)
        model = family.build(0)
        batch = batch_of(family, TASKS["one"])
        inputs = {name: value for name, value in batch.items() if name != "labels"}

        def states():
            with torch.no_grad():
                return model.base(**inputs, output_hidden_states=True).hidden_states

        before = states()
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            model("one", batch).square().sum().backward()
            optimiser.step()
        after = states()
        assert all(torch.equal(a, b) for a, b in zip(before[:3], after[:3], strict=True))
        assert not torch.equal(before[3], after[3])

    def test_shared_layers_cannot_be_frozen_one_by_one(self, encoders):
        with pytest.raises(SettingsError, match=r"'albert' share their weights"):
            family_of(encoders("albert"), ("one",), freeze=1).build(0)

    @pytest.mark.parametrize("architecture", slow_but(("bert", "distilbert", "deberta-v2", "modernbert"), "modernbert"))
    def test_dropout_zero_makes_training_deterministic(self, architecture, encoders):
        for rate, same in ((0.0, True), (0.3, False)):
            family = family_of(encoders(architecture), dropout=rate)
            model = family.build(0).train()
            for name in ("one", "tags", "keys"):
                batch = batch_of(family, TASKS[name])
                assert torch.equal(model(name, batch), model(name, batch)) == same

    def test_evaluation_mode_reaches_every_part(self, encoders):
        model = family_of(encoders()).build(0).eval()
        assert not any(module.training for native in model.natives.values() for module in native.modules())

    def test_bf16_trains_coarsely_answers_in_float32_and_is_not_used_in_evaluation(self, encoders):
        fine, coarse = (family_of(encoders(), ("one",), precision=p, dropout=0.0) for p in ("fp32", "bf16"))
        batch = batch_of(fine, TASKS["one"])
        models = [stir(family.build(0)) for family in (fine, coarse)]
        with torch.no_grad():
            assert torch.equal(*(model("one", batch) for model in models))
            exact, found = (model.train()("one", batch) for model in models)
        assert found.dtype == torch.float32
        assert 0 < (exact - found).abs().max() < 0.1

    @pytest.mark.parametrize("computes", [True, False])
    def test_auto_precision_is_bf16_where_the_device_computes_in_it(self, encoders, computes, monkeypatch):
        monkeypatch.setattr("sidequest.models.hf_model.computes_bf16", lambda device: computes)
        automatic, named = (
            stir(family_of(encoders(), ("one",), precision=p, dropout=0.0).build(0)).train()
            for p in ("auto", "bf16" if computes else "fp32")
        )
        batch = batch_of(family_of(encoders(), ("one",)), TASKS["one"])
        assert torch.equal(automatic("one", batch), named("one", batch))

    @pytest.mark.parametrize(
        "architecture", slow_but((name for name in TEXT_ARCHITECTURES if name != "albert"), *QUICK)
    )
    def test_every_parameter_of_a_base_knows_how_many_layers_stand_above_it(self, architecture, encoders):
        model = family_of(encoders(architecture), ("one",)).build(0)
        above = model.layers_below_the_top()
        assert set(above) == {name for name, _ in model.named_parameters() if name.startswith("base.")}
        assert {depth for name, depth in above.items() if "embeddings" in name} == {3}
        for layer in range(3):
            inside = {depth for name, depth in above.items() if f"layer.{layer}." in name or f"layers.{layer}." in name}
            assert inside == {2 - layer}
        assert all(depth == 0 for name, depth in above.items() if "pooler" in name)

    def test_layers_that_share_weights_have_one_rate(self, encoders):
        with pytest.raises(SettingsError, match=r"train\.layer_decay: the layers of the architecture 'albert' share"):
            family_of(encoders("albert"), ("one",)).build(0).layers_below_the_top()

    def test_lora_without_peft_names_the_extra(self, encoders, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "peft", None)
        with pytest.raises(SettingsError, match=r"sidequest\[peft\]"):
            family_of(encoders(), ("one",), lora=LoraSettings()).build(0)

    def test_lora_learns_little_and_is_merged_on_export(self, encoders, tmp_path):
        pytest.importorskip("peft", reason="the peft extra is not installed")
        family = family_of(encoders(), ("one",), lora=LoraSettings(r=2))
        model = family.build(0)
        again = family.build(0)
        assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
        learning = {name for name, p in model.base.named_parameters() if p.requires_grad}
        assert all("lora_" in name or name.startswith("pooler") for name in learning)
        assert any("lora_" in name for name in learning)
        stir(model)
        with torch.no_grad():
            live = model("one", batch_of(family, TASKS["one"]))
        family.export(model, TASKS["one"], tmp_path / "m")
        assert (plain_logits(tmp_path / "m", TASKS["one"]) - live).abs().max() < 1e-5
        with torch.no_grad():
            assert torch.equal(live, model("one", batch_of(family, TASKS["one"]))), "the live model keeps its adapters"

    def test_lora_targets_that_do_not_exist_are_named(self, encoders):
        pytest.importorskip("peft", reason="the peft extra is not installed")
        with pytest.raises(SettingsError, match="linear layers: dense, key, query, value"):
            family_of(encoders(), ("one",), lora=LoraSettings(targets=("nothing",))).build(0)


def test_an_encoder_takes_texts_or_images_not_both(encoders):
    for encoder, task in (("vit", TASKS["one"]), ("bert", make_task("i", Form.IMAGE))):
        with pytest.raises(SettingsError, match=r"takes (texts|images)"):
            HfFamily(Suite.of(task), HfSettings(encoder=str(encoders(encoder))))


def test_an_export_replaces_the_old_one_whole(encoders, tmp_path):
    family = family_of(encoders(), ("one",))
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "leftover.txt").write_text("old")
    family.export(family.build(0), TASKS["one"], tmp_path / "m")
    assert not (tmp_path / "m" / "leftover.txt").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def _words(count: int) -> Examples:
    return _tagged([["cat"] * count])


def _tagged(rows: list[list[str]]) -> Examples:
    tags = pa.array([[0] * len(row) for row in rows], type=pa.list_(pa.int64()))
    return Examples({"tokens": pa.array(rows)}, tags, np.arange(len(rows)))
