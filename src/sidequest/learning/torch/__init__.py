"""The torch learner: the one training loop, and the powers that some methods need.

`learner` trains and evaluates; `batching`, `losses` and `state` are its parts. `deltas`, `prediction_gain`, `head_importance`
and `discriminator` (with `ranking`) are the powers. May import `models` and `tasks`.
"""
