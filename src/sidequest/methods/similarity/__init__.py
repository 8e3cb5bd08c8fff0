"""Auxiliary rows that look like the primary's.

Kung, Chen, Yin, Yang and Chen (2021), Efficient Multi-Task Auxiliary Learning: Selecting Auxiliary Data by Feature
Similarity.

Read `row_sampling` (taking N rows, and the baseline `random-data`), `ranking` (which `auto` uses, too),
then `similarity`.
"""
