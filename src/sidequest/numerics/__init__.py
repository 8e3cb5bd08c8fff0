"""Small, pure pieces of mathematics: arrays and numbers in, arrays and numbers out.

What belongs here: estimators, bandits, processes and statistics that a method or a report needs and that can be tested against
an independent reference without a learner. May import numpy, scipy and scikit-learn, and nothing of sidequest; never torch.
"""
