"""The names of the controls that stand in every comparison, and what each is. They are no methods: they choose nothing."""

from __future__ import annotations

SINGLE_LONG, PROBE = "single-long", "probe"

CONTROLS = {
    SINGLE_LONG: "the primary alone, for as many batches as the method that scores best on select",
    PROBE: "the plain read-out of the model's features, without training the model",
}
