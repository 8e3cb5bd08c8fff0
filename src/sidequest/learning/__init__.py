"""Learners: models in the middle of training, and the one training loop.

`protocol`, `meter`, `fit`, `guard` and `simulated` need no torch; `torch_learner` does, and imports `models` and `tasks`.
Methods import `protocol` only.
"""
