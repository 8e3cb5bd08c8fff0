"""Task weights that are learned while the model trains.

Kourdis, Gordon-Hall and Gorinski (2020), αVIL: Learning to Leverage Auxiliary Tasks for Multitask Learning.

Read `reweighting` (what the two methods share), then `alphavil` and the baseline of the paper, `diw`.
"""
