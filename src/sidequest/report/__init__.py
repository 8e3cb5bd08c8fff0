"""Figures and pages. Only this package draws; it reads run directories and records, never a learner.

One file per method or theme with functions `evidence -> plotly figure`, typed by `records/evidence.py`; `style` has the shared
look and `save`. `page` puts figures into one HTML file: `reading` opens the directory, `sections` and `provenance` say what is
shown, `evidence` lists the figures of a recipe, `embedding` makes data safe inside a page. `images` writes figures as files.
"""
