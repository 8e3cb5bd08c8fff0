"""FLAD: online selection of auxiliary batches by the alignment of gradients."""

from sidequest.methods.flad.flad import Flad

__all__ = ["Flad"]
