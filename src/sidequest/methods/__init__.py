"""Methods: a package per paper, and how they are found.

A method is maths and decisions: it may import numpy, scipy, `numerics`, `recipe`, `settings` and `learning.protocol`,
never torch. `base` tells the lifecycle, `registry` is the list; CONTRIBUTING tells how to add one.
"""

from sidequest.methods.registry import METHODS, MethodChoice, get_method, method_names

__all__ = ["METHODS", "MethodChoice", "get_method", "method_names"]
