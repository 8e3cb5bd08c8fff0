"""What Python users call: suites from data in memory, `compare`, `select`, results that show themselves, models that predict.

Everything here is a thin layer over `runs`, and what it exports is in `sidequest` itself: `import sidequest as sq`.
"""
