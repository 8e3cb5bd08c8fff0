"""Spans of IOB tags: the semantics of conlleval, and IOB1 turned into IOB2.

A tag is `O`, or a prefix and a type: `B-PER`, `I-PER`, also `E-` and `S-` (a prefix alone, `B`, has the type "").
All functions work on the flattened tags of many sentences at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

O, B, I, E, S = range(5)  # noqa: E741, the tagging literature's own letters
PREFIXES = {"O": O, "B": B, "I": I, "E": E, "S": S}


def is_iob(tag: str) -> bool:
    """Whether a tag is `O` or has a prefix that spans are made of."""
    return tag == "O" or (tag[:1] in PREFIXES and tag[:1] != "O" and (len(tag) == 1 or tag[1] == "-"))


def split_tags(tags: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Prefix code and type number of each tag; the type of `O` is -1. One more entry, an `O`, is added at the end, so that the
    index -1 ("no prediction") means `O`."""
    prefix = np.array([PREFIXES[tag[0]] for tag in tags] + [O], dtype=np.int64)
    names = [tag[2:] for tag in tags]
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    kind = np.array([number[name] for name in names] + [-1], dtype=np.int64)
    kind[prefix == O] = -1
    return prefix, kind


def spans(prefix: np.ndarray, kind: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Start, end (inclusive) and type of every span.

    prefix, kind: int64 [tokens] as from `split_tags`; first: bool [tokens], whether a token begins a sentence.

    A span begins at B or S; at I or E after O, E or S, or after another type. It ends at E or S, before O, B or S, and before
    another type. So a stray I begins a span, as in conlleval.
    """
    if not len(prefix):
        empty = np.zeros(0, dtype=np.int64)
        return empty, empty, empty
    before = np.where(first, O, np.concatenate([[O], prefix[:-1]]))
    before_kind = np.where(first, -1, np.concatenate([[-1], kind[:-1]]))
    inside = prefix != O
    fresh = np.isin(prefix, (B, S)) | np.isin(before, (O, E, S)) | (kind != before_kind)
    starts = inside & fresh
    # A span ends where the next token is outside, begins a new span or a new sentence.
    ends = inside & np.concatenate([(~inside | starts | first)[1:], [True]])
    begin = np.flatnonzero(starts)
    return begin, np.flatnonzero(ends), kind[begin]


def iob1_to_iob2(tags: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, int]:
    """The tags (strings) with every span beginning in B, and how many were changed.

    In IOB1 a span begins with I unless it follows a span of its own type. On valid IOB2 this changes nothing.
    """
    names, index = np.unique(tags, return_inverse=True)
    prefix, kind = split_tags([str(name) for name in names])
    begin, _, _ = spans(prefix[index], kind[index], first)
    stray = begin[prefix[index[begin]] == I]
    out = tags.astype(object)
    out[stray] = [f"B{tag[1:]}" for tag in out[stray]]
    return out, len(stray)
