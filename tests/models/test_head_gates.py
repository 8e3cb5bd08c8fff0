"""Gate gradients: one batched backward equals a loop over single rows and finite differences, for every architecture."""

import importlib.util

import pytest
import torch
import transformers
from torch import nn
from torch.nn import functional

from sidequest.errors import SettingsError
from sidequest.models.head_gates import find_heads, open_gates
from tests.helpers.tiny_encoders import CONFIGURATIONS, alone, tiny_batch, tiny_model


def importance(model, inputs, labels):
    """∂L/∂ξ [rows, layers, heads] of the cross-entropy of each row."""
    with open_gates(model) as gates:
        gates.begin(len(labels))
        return gates.gradients(functional.cross_entropy(model(**inputs).logits, labels, reduction="sum"))


@pytest.mark.parametrize("architecture", CONFIGURATIONS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
def test_one_batched_backward_equals_rows_alone_without_padding(architecture, dtype, tolerance):
    model = tiny_model(architecture, dtype=dtype)
    inputs, labels = tiny_batch(architecture)
    inputs = {name: value.to(dtype) if value.is_floating_point() else value for name, value in inputs.items()}
    found = importance(model, inputs, labels)
    loop = torch.cat([importance(model, alone(inputs, row), labels[row : row + 1]) for row in range(len(labels))])
    assert found.shape == (5, 3, 4)
    assert found.abs().min() > 0
    torch.testing.assert_close(found, loop, rtol=tolerance, atol=tolerance * float(loop.abs().max()))


def finite_difference(model, inputs, labels, layer: int, head: int, step: float) -> torch.Tensor:
    """∂L/∂ξ of one head for each row. Independent of the gates: scales the head's numbers where they enter the projection."""
    heads, projections = find_heads(model)

    def losses(factor: float) -> torch.Tensor:
        calls = iter(range(100))

        def scale(_, args):
            if next(calls) != layer:
                return None
            changed = args[0].clone()
            size = changed.shape[-1] // heads
            changed[..., head * size : (head + 1) * size] *= factor
            return (changed,)

        hooks = [projection.register_forward_pre_hook(scale) for projection in projections]
        with torch.no_grad():
            result = functional.cross_entropy(model.eval()(**inputs).logits, labels, reduction="none")
        for hook in hooks:
            hook.remove()
        return result

    return (losses(1 + step) - losses(1 - step)) / (2 * step)


@pytest.mark.parametrize("architecture", CONFIGURATIONS)
def test_gradients_equal_finite_differences(architecture):
    model = tiny_model(architecture)
    inputs, labels = tiny_batch(architecture)
    found = importance(model, inputs, labels)
    # ModernBERT turns queries and keys in single precision, whatever the model's: differences of its loss are coarse.
    step, tolerance = (1e-3, 2e-3) if architecture == "modernbert" else (1e-5, 1e-5)
    for layer in range(3):
        for head in range(4):
            expected = finite_difference(model, inputs, labels, layer, head, step)
            torch.testing.assert_close(found[:, layer, head], expected, rtol=tolerance, atol=tolerance / 1e3)


@pytest.mark.parametrize("architecture", ["bert", "modernbert", "deberta-v2", "mpnet", "electra", "distilbert"])
def test_tagging_sums_over_the_words_of_a_row(architecture):
    model = tiny_model(architecture, "TokenClassification")
    inputs, _ = tiny_batch(architecture)
    labels = torch.where(inputs["attention_mask"] == 1, inputs["input_ids"] % 3, -100)

    def of(inputs, labels):
        with open_gates(model) as gates:
            gates.begin(len(labels))
            logits = model(**inputs).logits
            return gates.gradients(functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum"))

    found = of(inputs, labels)
    for row, length in enumerate(inputs["attention_mask"].sum(1).tolist()):
        one = of(alone(inputs, row), labels[row : row + 1, :length])
        torch.testing.assert_close(found[row : row + 1], one, rtol=1e-12, atol=1e-12)


def test_the_texts_of_a_row_share_its_gates():
    """Two rows with three and two choices: the gradient of a shared gate is the sum over the row's texts."""
    model = tiny_model("bert", "MultipleChoice")
    inputs, _ = tiny_batch("bert")
    flat = {name: value[None] for name, value in inputs.items()}
    owners = torch.tensor([0, 0, 0, 1, 1])
    with open_gates(model) as gates:
        gates.begin(2, owners)
        scores = model(**flat).logits[0]
        shared = gates.gradients(-scores[:3].log_softmax(0)[1] - scores[3:].log_softmax(0)[0])
        gates.begin(5)
        scores = model(**flat).logits[0]
        each = gates.gradients(-scores[:3].log_softmax(0)[1] - scores[3:].log_softmax(0)[0])
    torch.testing.assert_close(shared, torch.stack([each[:3].sum(0), each[3:].sum(0)]))


def test_gates_change_nothing_and_leave_no_trace():
    model = tiny_model("bert")
    model.bert.embeddings.requires_grad_(False)
    before = {name: (p.requires_grad, p.clone()) for name, p in model.named_parameters()}
    inputs, labels = tiny_batch("bert")
    with open_gates(model) as gates:
        assert not model.training
        gates.begin(len(labels))
        inside = model(**inputs).logits
    assert model.training
    for name, parameter in model.named_parameters():
        assert parameter.requires_grad == before[name][0]
        assert parameter.grad is None
        assert torch.equal(parameter, before[name][1])
    torch.testing.assert_close(inside, model.eval()(**inputs).logits, rtol=0, atol=0)
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_an_error_inside_leaves_no_trace_either():
    model = tiny_model("bert")
    with pytest.raises(KeyError), open_gates(model):
        raise KeyError
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_half_precision_outputs_have_full_precision_gradients():
    model = tiny_model("bert", dtype=torch.float32)
    inputs, labels = tiny_batch("bert")
    exact = importance(model, inputs, labels)
    with torch.autocast("cpu", torch.bfloat16):
        found = importance(model, inputs, labels)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, exact, rtol=0.1, atol=0.05 * float(exact.abs().max()))


def test_albert_counts_each_application_of_its_shared_layer():
    model = tiny_model("albert", num_hidden_layers=5)
    assert len(find_heads(model)[1]) == 1
    inputs, labels = tiny_batch("albert")
    assert importance(model, inputs, labels).shape == (5, 5, 4)


def test_adapters_around_the_projection_are_gated():
    peft = pytest.importorskip("peft", reason="the `peft` extra is not installed")
    model = tiny_model("bert")
    inputs, labels = tiny_batch("bert")
    plain = importance(model, inputs, labels)
    peft.inject_adapter_in_model(peft.LoraConfig(target_modules=["dense", "query"]), model)  # adapters begin as zero
    torch.testing.assert_close(importance(model.double(), inputs, labels), plain)


@pytest.mark.integration
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
def test_minilm_batched_equals_rows_alone_and_differences(dtype, tolerance):
    from sidequest.models.encoders import resolve
    from sidequest.models.local_encoders import DEMO_PACKAGE

    if importlib.util.find_spec(DEMO_PACKAGE) is None:
        pytest.skip("the `demo` extra is not installed")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(resolve("minilm").directory, num_labels=3)
    inputs, labels = tiny_batch("bert", lengths=(31, 6, 18))
    model = model.to(dtype)
    found = importance(model, inputs, labels)
    loop = torch.cat([importance(model, alone(inputs, row), labels[row : row + 1]) for row in range(3)])
    assert found.shape == (3, 6, 12)
    if dtype == torch.float64:
        for layer, head in [(0, 0), (2, 7), (5, 11)]:
            expected = finite_difference(model, inputs, labels, layer, head, 1e-4)
            torch.testing.assert_close(found[:, layer, head], expected, rtol=1e-5, atol=1e-9)
    torch.testing.assert_close(found, loop, rtol=tolerance, atol=tolerance * float(loop.abs().max()))


class Config:
    num_attention_heads = 4
    model_type = "strange"


def test_a_model_without_attention_is_refused():
    with pytest.raises(SettingsError, match=r"Sequential has no module whose `config` has `num_attention_heads`.*hf"):
        find_heads(nn.Sequential(nn.Linear(2, 2)))


def test_an_unknown_architecture_is_told_what_was_looked_for():
    class StrangeAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.mixer = nn.Linear(8, 8)

    strange = nn.Sequential(StrangeAttention())
    strange.config = Config()
    with pytest.raises(SettingsError, match=r"'strange'.*\(StrangeAttention\).*output\.dense, out_lin, dense, o, Wo"):
        find_heads(strange)


def test_heads_that_do_not_divide_the_projection_are_refused():
    class OddAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.o_proj = nn.Linear(10, 10)

    odd = nn.Sequential(OddAttention())
    odd.config = Config()
    with pytest.raises(SettingsError, match=r"takes 10 numbers, which are not shared equally by 4 heads"):
        find_heads(odd)


def test_rows_joined_by_an_attention_are_refused():
    model = tiny_model("bert")
    inputs, _ = tiny_batch("bert")
    with open_gates(model) as gates:
        gates.begin(3)  # the batch has five
        with pytest.raises(SettingsError, match=r"\[3, positions, width\], found \[5, 14, 24\]"):
            model(**inputs)
