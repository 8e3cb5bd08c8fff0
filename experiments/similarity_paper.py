"""The numbers of Kung et al. (2021) that stand beside ours, as printed; scores are in per cent, of GLUE's test sets.

Two numbers in a cell are two metrics. For STS-B they are Pearson and Spearman. For MRPC the paper calls them accuracy and F1, but
the higher one can hardly be the accuracy: it is F1 in all other tables of these tasks. 87.1/87.7 may be a misprint of 87.1/82.7.
What the paper shows in Figures 6 to 9 alone is not given in numbers.
"""

from __future__ import annotations

# Table 5 (Figures 3 to 5): rows taken -> with BCE, with CE, at random
CURVES: dict[str, dict[int, tuple[str, str, str]]] = {
    "rte": {
        500: ("68.0", "66.3", "67.6"),
        1000: ("68.4", "68.7", "68.1"),
        2000: ("68.0", "69.0", "67.8"),
        4000: ("69.0", "68.6", "69.1"),
        8000: ("69.1", "70.3", "68.9"),
        16_000: ("71.0", "70.1", "70.7"),
        32_000: ("72.1", "72.0", "70.7"),
        64_000: ("73.3", "73.2", "72.4"),
        128_000: ("74.1", "73.9", "72.3"),
        256_000: ("75.1", "75.4", "73.1"),
        512_000: ("75.9", "74.9", "74.4"),
        600_000: ("75.5", "75.2", "75.2"),
        700_000: ("75.5", "75.9", "74.9"),
        800_000: ("75.7", "75.9", "75.4"),
    },
    "mrpc": {
        500: ("88.0/83.4", "87.9/83.5", "86.2/81.8"),
        1000: ("87.1/87.7", "87.7/83.6", "88.1/83.5"),
        2000: ("86.9/82.7", "87.7/83.7", "87.2/82.8"),
        4000: ("87.4/82.7", "87.8/83.5", "87.7/83.4"),
        8000: ("87.7/83.4", "87.4/83.1", "87.5/83.2"),
        16_000: ("87.8/83.4", "87.7/83.6", "86.5/82.2"),
        32_000: ("87.8/83.1", "87.2/83.0", "86.9/82.5"),
        64_000: ("87.7/83.7", "86.9/82.3", "86.0/81.2"),
        128_000: ("87.3/83.1", "87.3/83.1", "87.7/83.7"),
        256_000: ("88.1/84.2", "87.8/83.9", "87.9/83.9"),
        512_000: ("88.2/84.0", "88.8/85.0", "87.9/83.9"),
        600_000: ("89.3/85.7", "88.7/84.9", "88.2/84.4"),
        700_000: ("89.3/85.6", "88.1/84.3", "87.3/83.4"),
        800_000: ("88.2/84.4", "89.2/85.7", "88.1/84.3"),
    },
    "stsb": {
        500: ("82.7/81.0", "83.2/81.8", "83.0/81.4"),
        1000: ("83.0/81.4", "83.5/82.0", "83.7/82.1"),
        2000: ("84.8/83.0", "83.8/82.1", "84.4/82.9"),
        4000: ("86.9/85.7", "84.0/82.5", "85.5/84.0"),
        8000: ("87.4/86.4", "83.3/81.7", "86.7/85.5"),
        16_000: ("86.5/85.5", "87.0/86.1", "85.7/84.5"),
        32_000: ("86.6/85.8", "86.4/85.8", "86.6/85.5"),
        64_000: ("86.8/86.2", "86.9/86.4", "86.8/85.9"),
        128_000: ("86.8/86.3", "86.7/86.2", "87.2/86.5"),
        256_000: ("86.4/85.9", "86.8/86.3", "86.9/86.0"),
        512_000: ("86.6/85.9", "86.6/85.8", "86.4/85.7"),
        600_000: ("86.3/85.8", "86.0/85.1", "86.6/85.9"),
        700_000: ("86.4/85.6", "86.4/85.8", "86.4/85.8"),
        800_000: ("85.8/85.2", "85.8/84.9", "86.5/85.8"),
    },
}
# Table 1: the primary alone (ST-DNN), and beside all rows of all other tasks (MT-DNN), both fine-tuned on the primary in the end
ENDS: dict[str, dict[str, str]] = {
    "cola": {"single": "53.32", "all": "46.44"},
    "mnli": {"single": "83.61/83.05", "all": "83.42/82.59"},
    "mrpc": {"single": "87.05/82.56", "all": "88.67/84.83"},
    "qnli": {"single": "90.49", "all": "90.60"},
    "qqp": {"single": "70.44/88.91", "all": "70.38/88.97"},
    "rte": {"single": "64.97", "all": "75.57"},
    "sst2": {"single": "93.95", "all": "93.43"},
    "stsb": {"single": "84.65/82.74", "all": "86.23/85.42"},
}
# Table 3, with 10,000 rows taken: seconds of training the discriminator, of ranking, and of everything
SECONDS: dict[str, dict[str, tuple[str, str, str]]] = {
    "rte": {"all": ("", "", "15,891"), "random": ("", "", "290"), "bce": ("95", "775", "1,160")},
    "mrpc": {"all": ("", "", "15,921"), "random": ("", "", "340"), "bce": ("95", "775", "1,210")},
    "stsb": {"all": ("", "", "15,991"), "random": ("", "", "450"), "bce": ("95", "775", "1,320")},
}


def printed(primary: str, taken: int | str) -> tuple[str, str, str]:
    """The paper's three cells of a row of our table, by the rows taken or by `single` and `all`; empty where it has no number."""
    if isinstance(taken, int):
        return CURVES.get(primary, {}).get(taken, ("", "", ""))
    return ENDS.get(primary, {}).get(taken, ""), "", ""
