"""Contracts as functions: what every method and every learner must satisfy. For our tests and for third parties' own.

    from sidequest.testing import check_method

    check_method(MyMethod)

A breach is an AssertionError that says what to look at.
"""

from sidequest.testing.check_learner import check_learner
from sidequest.testing.check_method import check_method, simulated_learner

__all__ = ["check_learner", "check_method", "simulated_learner"]
