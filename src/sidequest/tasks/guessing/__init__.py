"""Guesses for `sidequest init`: how a file is written (`files`), what its columns hold (`facts`), which of them are texts and
labels (`columns`), what type of task that is (`kinds`), and the suite file with a reason beside each guess (`suite`).

A guess that could be wrong says so; what can't be guessed is refused with a reason. May import all of `tasks`.
"""

from sidequest.tasks.guessing.suite import guess_suite

__all__ = ["guess_suite"]
