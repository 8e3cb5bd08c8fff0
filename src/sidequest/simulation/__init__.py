"""Learners and surfaces that know the right answer, in numpy: what methods are tested and compared on.

`learner` is a whole simulated model; `deltas`, `heads` and `similarity` give it the powers that some methods need; `mtl_bandit`
is the synthetic problem of Glover & Hokamp (2019); `surfaces` are mixture surfaces with a known optimum. No torch here.
"""
