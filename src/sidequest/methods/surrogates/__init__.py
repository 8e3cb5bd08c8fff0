"""Methods that fit or build a cheap stand-in for trained mixtures: task modelling and Merge-to-Mix."""

from sidequest.methods.surrogates.merge_to_mix import MergeToMix
from sidequest.methods.surrogates.task_modelling import TaskModelling

__all__ = ["MergeToMix", "TaskModelling"]
