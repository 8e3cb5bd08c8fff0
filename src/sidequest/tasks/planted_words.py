"""The words of the planted suite: for each feature, clauses with a gap, and what fills it if the feature is present or absent."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Feature:
    """clauses: with `_` for the word. present, absent: words that say so."""

    clauses: tuple[str, ...]
    present: tuple[str, ...]
    absent: tuple[str, ...]


def _feature(clauses: str, present: str, absent: str) -> Feature:
    return Feature(tuple(clauses.split(" | ")), tuple(present.split()), tuple(absent.split()))


FEATURES: dict[str, Feature] = {
    "mood": _feature(
        "the cook looked _ | my neighbour felt _ | the teacher seemed _ | everyone was _ about it",
        "cheerful happy delighted joyful merry glad pleased jolly content thrilled",
        "gloomy sad miserable unhappy grumpy upset sorrowful bitter depressed tearful",
    ),
    "weather": _feature(
        "it was a _ morning | the afternoon stayed _ | the forecast said _ weather | the day began _",
        "sunny bright clear warm cloudless dry mild radiant golden balmy",
        "rainy stormy foggy cold snowy windy grey freezing drizzly icy",
    ),
    "size": _feature(
        "they carried a _ box | a _ house stood there | she drew a _ circle | he bought a _ table",
        "huge giant enormous large massive big vast immense colossal gigantic",
        "tiny small little miniature minute compact wee slim short narrow",
    ),
    "speed": _feature(
        "the van drove _ | they walked home _ | the letter was written _ | he answered _",
        "quickly rapidly swiftly hastily fast promptly hurriedly speedily briskly instantly",
        "slowly gradually lazily sluggishly leisurely steadily unhurriedly calmly gently belatedly",
    ),
    "age": _feature(
        "a _ man waited | the bridge looked _ | his _ sister called | they sold a _ bicycle",
        "young new recent modern youthful fresh teenage junior novel newborn",
        "old ancient elderly aged antique worn grizzled senior historic decrepit",
    ),
    "noise": _feature(
        "the street was _ | the children played in a _ way | the engine sounded _ | the hall stayed _",
        "loud noisy deafening rowdy booming thunderous shrill blaring clamorous raucous",
        "quiet silent hushed still peaceful soundless muted soft calm muffled",
    ),
    "taste": _feature(
        "the soup tasted _ | the sauce was rather _ | her drink seemed _ | the cake turned out _",
        "sweet sugary honeyed syrupy fruity caramelised candied luscious chocolatey creamy",
        "salty sour spicy peppery vinegary pungent briny acidic tart savoury",
    ),
    "price": _feature(
        "the tickets were _ | the repair proved _ | they found a _ hotel | the coat looked _",
        "cheap inexpensive affordable discounted free economical budget reduced bargain thrifty",
        "expensive costly pricey overpriced luxurious exorbitant dear lavish premium valuable",
    ),
    "dirt": _feature(
        "the kitchen was _ | his boots were _ | the windows looked _ | the floor stayed _",
        "clean spotless tidy washed polished shiny immaculate pristine scrubbed sterile",
        "dirty filthy muddy dusty grimy stained greasy messy grubby soiled",
    ),
}
