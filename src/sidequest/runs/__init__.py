"""Runs: a method driven round by round into a directory, the final training, the comparison.

May import everything but `report` and `cli`.
"""
