"""Guesses for `sidequest init`: how a file is written (`files`), what its columns hold (`facts`), which could be the label
(`labels`) and which are the texts (`columns`), what type of task that is (`kinds`), and the suite file with a reason beside each
guess (`suite`); `names` are those that columns have in real files.

A guess that could be wrong says so; what can't be guessed is refused with a reason. May import all of `tasks`.
"""

from sidequest.tasks.guessing.suite import guess_suite

__all__ = ["guess_suite"]
