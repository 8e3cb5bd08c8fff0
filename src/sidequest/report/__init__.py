"""Figures and pages. Only this package draws; it reads run directories and evidence (plain data), never a learner.

One file per method or theme with functions `evidence -> plotly figure`; `style` has the shared look and `save`.
"""
