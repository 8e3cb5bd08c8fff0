"""sidequest: which auxiliary tasks should a model train with, how much of each, with what weight, and which examples?"""

__version__ = "0.1.0"
