"""AutoSeM: which tasks by a bandit, then how much of each by a Gaussian process.

Guo, Pasunuru and Bansal (2019), AutoSeM: Automatic Task Selection and Mixing in Multi-Task Learning.

Read `stage1` (the bandit over tasks), `stage2` (the search for a mixture), then `autosem`, which puts them together. The
mathematics of both is in `numerics`: `beta_bernoulli`, `gp`, `acquisition`, `gp_hedge` and `mixtures`.
"""
