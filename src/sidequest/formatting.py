"""Numbers for people: the same in the shell, on the page and in csv files. Minus zero is zero."""

from __future__ import annotations

import math
import re

UNKNOWN = "–"


def fixed(value: float, digits: int = 3, *, sign: bool = False) -> str:
    """`0.123`, or `+0.123` with a sign; never `-0.000`, and an unknown number is a dash."""
    if not math.isfinite(value):
        return UNKNOWN
    return without_minus_zero(format(value, f"{'+' if sign else ''}.{digits}f"), "+" if sign else "")


def without_minus_zero(shown: str, sign: str = "") -> str:
    """A formatted number, with another sign where all of its digits are zero. sign: what stands there instead of the minus."""
    return sign + shown[1:] if shown.startswith("-") and is_zero(shown) else shown


def signed(value: float, digits: int = 3) -> str:
    """A difference: always with its sign."""
    return fixed(value, digits, sign=True)


def telling(value: float, digits: int = 3) -> str:
    """A difference that is known not to be zero: with as many more digits as it takes to see that."""
    return next(
        (shown for more in range(digits, 7) if not is_zero(shown := signed(value, more))), signed(value, digits)
    )


def is_zero(shown: str) -> bool:
    """Whether a formatted number has no other digit than zero."""
    return shown != UNKNOWN and not re.search("[1-9]", shown)


def without_zero_differences(sentence: str) -> str:
    """`+0.0000 ± 0.0001` in a sentence, as words: what is zero to all digits shown is no difference."""
    return re.sub(r"(?<![\w.])[+-]0\.0+(?![\d.]| ?%)(?: ± ([\d.]*\d))?", _no_difference, sentence)


def _no_difference(found: re.Match[str]) -> str:
    rest = found.string[found.end() :]
    error = f", ± {found[1]}{'' if not rest or rest[0] in ',;:.)' else ','}" if found[1] else ""
    return f"no measurable difference{error}"


def between(low: float, high: float, digits: int = 3) -> str:
    """An interval of a difference, as `[-0.010, +0.030]`; empty where it is unknown."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"[{signed(low, digits)}, {signed(high, digits)}]"


def half(mean: float, high: float, digits: int = 3) -> str:
    """Half of a symmetric interval, as ` ± 0.012`; empty where it is unknown."""
    return f" ± {fixed(high - mean, digits)}" if math.isfinite(high - mean) else ""


def plain(value: float) -> float | str:
    """For a csv: in full, minus zero as zero, and nothing where the number is unknown."""
    return value + 0.0 if math.isfinite(value) else ""


def seeds_of(count: int) -> str:
    return f"{count} seed{'' if count == 1 else 's'}"
