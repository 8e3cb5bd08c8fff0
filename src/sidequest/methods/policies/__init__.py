"""Policies that draw a task for every batch, learned online or from logs.

Glover and Hokamp (2019), Task Selection Policies for Multitask Learning.

Read `log` (what a policy writes down), `task_policy` (a policy as a phase of a recipe), then `exp3s` (learned online) and
`counterfactual` with `logged_runs` (learned from logs). The mathematics is in `numerics`: `exp3s`, `reservoir`, `off_policy`.
"""
