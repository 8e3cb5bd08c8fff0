"""Tasks and rows whose attention heads resemble the primary's.

Ma, Lou, Zhang, Wang and Vosoughi (2021), GradTS: A Gradient-Based Automatic Auxiliary Task Selection Method Based on
Transformer Networks.

Read `head_ranking` (tasks ranked by their heads), then `gradts` (the three rules that choose from a ranking) and the
baselines of the paper, `heuristics`.
"""
