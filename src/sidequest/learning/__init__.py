"""Learners: models in the middle of training.

`protocol` says what a learner is, `fit` is the one schedule, `meter` counts what it costs and `guard` keeps *report* away: no
torch. The learner that trains real models is in `torch/`; learners that only pretend are in `sidequest.simulation`.
"""
