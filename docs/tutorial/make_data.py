"""The sample files of the tutorial: sixteen files with the faults that real ones have, composed of invented phrases.

`python docs/tutorial/make_data.py` writes docs/tutorial/data again, byte for byte. `data/answers.json` is written by hand: what a
person would say of each file, fixed before `sidequest init` was taught to guess it.
"""

from __future__ import annotations

import csv
import io
import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
PHRASES: dict[str, Any] = yaml.safe_load((HERE / "phrases.yaml").read_text(encoding="utf-8"))
FEELINGS: dict[str, list[str]] = PHRASES["feelings"]
SENTIMENT = {"joy": "positive", "surprise": "positive", "neutral": "neutral"}
NLI = ("entailment", "contradiction", "neutral")


def table(names: list[str] | None, rows: list[list[Any]], mark: str = ",") -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=mark, lineterminator="\n")
    writer.writerows([*([names] if names else []), *rows])
    return out.getvalue()


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def feeling(rng: random.Random, name: str) -> str:
    return capital(rng.choice(PHRASES["frames"]).format(x=rng.choice(FEELINGS[name])))


def sms_spam(rng: random.Random) -> bytes:
    """Kaggle's header `v1,v2,,,` in cp1252; a few texts run over into the nameless columns."""
    rows = []
    for i in range(300):
        label = "spam" if rng.random() < 0.2 else "ham"
        text = rng.choice(PHRASES[label]).format(n=rng.randint(2, 60) if label == "ham" else rng.randint(100, 2000))
        rest = [" bt not his girlfrnd...", " G o o d n i g h t", ""] if i % 90 == 40 else ["", "", ""]
        rows.append([label, text, *rest])
    return table(["v1", "v2", "", "", ""], rows).encode("cp1252")


def dialogue_emotions(rng: random.Random) -> str:
    names = [
        "Sr No.",
        "Utterance",
        "Speaker",
        "Emotion",
        "Sentiment",
        "Dialogue_ID",
        "Utterance_ID",
        "Season",
        "Episode",
    ]
    rows = []
    for i in range(260):
        emotion = rng.choices(list(FEELINGS), [4, 3, 3, 2, 3, 6])[0]
        clock = f"00:{i // 20:02}:{i % 20 * 3:02},{rng.randint(100, 999)}"
        later = f"00:{i // 20:02}:{i % 20 * 3 + 2:02},{rng.randint(100, 999)}"
        mood = SENTIMENT.get(emotion, "negative")
        who = rng.choice(PHRASES["people"]).split()[0]
        rows.append(
            [i + 1, feeling(rng, emotion), who, emotion, mood, i // 6, i % 6, 1 + i // 130, 1 + i // 26, clock, later]
        )
    return table([*names, "StartTime", "EndTime"], rows)


def _several(rng: random.Random) -> tuple[str, list[str]]:
    """A text with none to two feelings; a neutral text has no label."""
    chosen = rng.sample([name for name in FEELINGS if name != "neutral"], rng.choices([0, 1, 2], [1, 4, 2])[0])
    return " ".join(feeling(rng, name) for name in chosen or ["neutral"]), sorted(chosen)


def emotions_list(rng: random.Random) -> str:
    rows = []
    for i in range(300):
        text, labels = _several(rng)
        rows.append({"id": f"em{i:04}", "text": text, "labels": labels, "annotators": rng.randint(3, 5)})
    return lines(rows)


def emotions_onehot(rng: random.Random) -> str:
    names = [name for name in FEELINGS if name != "neutral"]
    rows = []
    for i in range(300):
        text, labels = _several(rng)
        unclear = rng.random() < 0.03
        rows.append(
            [
                text,
                f"e{i:05x}",
                f"user_{rng.randint(0, 90)}",
                rng.randint(1, 80),
                unclear,
                *(int(name in labels) for name in names),
            ]
        )
    return table(["text", "id", "author", "rater_id", "example_very_unclear", *names], rows)


def news_topics(rng: random.Random) -> str:
    rows = []
    for i in range(280):
        topic = str(1 + i % 4)
        title, _ = rng.choice(PHRASES["news"][topic])
        _, description = rng.choice(PHRASES["news"][topic])
        place, day = rng.choice(PHRASES["cities"]), rng.choice(PHRASES["days"])
        rows.append([topic, f"{title} in {place}", f"{place}, {day} - {description}"])
    rng.shuffle(rows)
    return table(["Class Index", "Title", "Description"], rows)


def _pair(rng: random.Random) -> tuple[str, str, str]:
    label = rng.choice(NLI)
    scene = rng.choice(PHRASES["scenes"])
    place = rng.choice(["", " in the morning", " near the harbour", " on a sunny day", " behind the school"])
    return scene[0] + place, scene[1 + NLI.index(label)], label


def sentence_pairs(rng: random.Random) -> str:
    names = ["pair_ID", "sentence_A", "sentence_B", "relatedness_score", "entailment_judgment"]
    middle = {"entailment": 4.5, "contradiction": 3.6, "neutral": 2.6}
    rows = []
    for i in range(300):
        first, second, label = _pair(rng)
        score = min(5.0, max(1.0, rng.gauss(middle[label], 0.4)))
        rows.append([i + 1, capital(first), capital(second), f"{score:.1f}", label.upper()])
    return table(names, rows, "\t")


def nli(rng: random.Random) -> str:
    """As SNLI: annotators who did not agree leave the gold label `-`."""
    rows = []
    for i in range(300):
        premise, hypothesis, label = _pair(rng)
        votes = [label if rng.random() < 0.55 else rng.choice(NLI) for _ in range(5)]
        gold = next((vote for vote in NLI if votes.count(vote) > 2), "-")
        ids = {"pairID": f"{i:06}r1{gold[0]}", "captionID": f"{i:06}#1"}
        rows.append(
            {
                "annotator_labels": votes,
                "gold_label": gold,
                **ids,
                "premise": capital(premise) + ".",
                "hypothesis": capital(hypothesis) + ".",
            }
        )
    return lines(rows)


def questions_answers(rng: random.Random) -> str:
    rows = []
    for i in range(300):
        question, answer = rng.choice(PHRASES["questions"])
        right = rng.random() < 0.3
        if not right:
            answer = rng.choice([other for asked, other in PHRASES["questions"] if asked != question])
        day = rng.choice(PHRASES["days"])
        rows.append([f"Q{i // 3}", f"{question}?" if i % 2 else f"{question}, she asked on {day}", answer, int(right)])
    return table(["qid", "question", "answer", "is_correct"], rows)


def support_tickets(rng: random.Random) -> str:
    """One JSON list over many lines, as an export button writes it."""
    rows = []
    for i in range(240):
        queue = rng.choice(list(PHRASES["queues"]))
        order, end = rng.randint(1000, 9999), rng.choice(["Thanks", "Regards", "Please help"])
        body = f"Hello, {rng.choice(PHRASES['queues'][queue])}. Order {order}. {end}, {rng.choice(PHRASES['people'])}"
        rows.append(
            {
                "ticket_id": 7000 + i,
                "created_at": f"2024-0{1 + i // 40}-{1 + i % 28:02}",
                "language": "en",
                "body": body,
                "queue": queue,
            }
        )
    return json.dumps(rows, indent=2)


def course_survey(rng: random.Random) -> str:
    """A preamble before the header, and semicolons."""
    rows = []
    for i in range(220):
        label = rng.choices(list(PHRASES["survey"]), [5, 3, 2])[0]
        comment = f"{capital(rng.choice(PHRASES['survey'][label]))}; {rng.choice(PHRASES['survey'][label])} (group {i // 20 + 1})"
        rows.append([f"R-{i:03}", comment, label])
    preamble = "Course survey, export of all answers\nPeriod: spring\nRows: 220, one per participant\n\n"
    return preamble + table(["Respondent", "Comment", "Satisfaction"], rows, ";")


def product_reviews(rng: random.Random) -> str:
    """Only some rows are labelled, and some labels are misspelt."""
    rows = []
    for i in range(360):
        label = rng.choice(["positive", "negative"])
        first, second = rng.sample(PHRASES["reviews"][label], 2)
        text = f"{capital(first)}, and {second}. That is all about this {rng.choice(PHRASES['things'])}."
        rows.append([f"r{i}", text, "" if rng.random() < 0.3 else label])
    for i, typo in {17: "postive", 101: "postive", 230: "negativ"}.items():
        rows[i][2] = typo
    return table(["review_id", "review", "sentiment"], rows)


def readability(rng: random.Random) -> str:
    """A number to predict beside another number, columns that are mostly empty, and texts longer than models like."""
    rows = []
    every = [phrase for phrases in FEELINGS.values() for phrase in phrases]
    for i in range(120):
        hard = rng.random()
        sentences = []
        for _ in range(rng.randint(4, 16)):
            parts = rng.sample(every, 3 if rng.random() < hard else 1)
            sentences.append(capital(", although ".join(parts)) + ".")
        url = "https://example.org/texts" if i % 9 == 0 else ""
        rows.append(
            [
                f"{rng.getrandbits(36):09x}",
                url,
                "CC BY" if url else "",
                " ".join(sentences),
                f"{1.5 - 4 * hard + rng.gauss(0, 0.3):.6f}",
                f"{rng.uniform(0.42, 0.6):.6f}",
            ]
        )
    return table(["id", "url_legal", "license", "excerpt", "target", "standard_error"], rows)


def intents(rng: random.Random) -> str:
    """No header at all."""
    rows = []
    for _ in range(240):
        label = rng.choice(list(PHRASES["intents"]))
        rows.append(
            [
                label,
                rng.choice(PHRASES["intents"][label]).format(
                    city=rng.choice(PHRASES["cities"]), day=rng.choice(PHRASES["days"])
                ),
            ]
        )
    return table(None, rows, "\t")


def entities(rng: random.Random) -> str:
    """CoNLL's columns under a name that does not tell."""

    def words() -> Iterator[tuple[str, str, str]]:
        person, company = rng.choice(PHRASES["people"]).split(), rng.choice(PHRASES["companies"]).split()
        for i, word in enumerate(person):
            yield word, "NNP", "B-PER" if i == 0 else "I-PER"
        yield from (
            (word, tag, "O")
            for word, tag in rng.choice([[("joined", "VBD")], [("left", "VBD")], [("met", "VBD"), ("with", "IN")]])
        )
        for i, word in enumerate(company):
            yield word, "NNP", "B-ORG" if i == 0 else "I-ORG"
        yield "in", "IN", "O"
        yield rng.choice(PHRASES["cities"]), "NNP", "B-LOC"
        if rng.random() < 0.5:
            yield from (("on", "IN", "O"), (rng.choice(PHRASES["days"]), "NNP", "O"))
        yield ".", ".", "O"

    sentences = ["".join(" ".join(word) + "\n" for word in words()) for _ in range(200)]
    return "-DOCSTART- -X- O\n\n" + "\n".join(sentences)


def assistant_chats(rng: random.Random) -> str:
    """Conversations to imitate: there is nothing to classify."""
    rows = []
    for i in range(120):
        question, answer = rng.choice(PHRASES["questions"])
        turns = [("system", "You are a helpful guide."), ("user", capital(question) + "?"), ("assistant", answer)]
        rows.append({"id": i, "messages": [{"role": role, "content": content} for role, content in turns]})
    return lines(rows)


def product_names(rng: random.Random) -> str:
    """250 labels in 252 rows: names, not classes."""
    rows = []
    for i in range(252):
        thing, review = rng.choice(PHRASES["things"]), rng.choice(PHRASES["reviews"]["positive"])
        rows.append(
            [
                capital(f"a {thing} for {rng.choice(PHRASES['cities'])}: {review}"),
                f"{thing}-{i if i not in (100, 200) else i - 1}".replace(" ", "-"),
            ]
        )
    for i in (100, 200):
        rows[i][1] = rows[i - 1][1]
    return table(["text", "label"], rows)


FILES: dict[str, Callable[[random.Random], str | bytes]] = {
    "sms_spam.csv": sms_spam,
    "dialogue_emotions.csv": dialogue_emotions,
    "emotions_list.jsonl": emotions_list,
    "emotions_onehot.csv": emotions_onehot,
    "news_topics.csv": news_topics,
    "sentence_pairs.tsv": sentence_pairs,
    "nli.jsonl": nli,
    "questions_answers.csv": questions_answers,
    "support_tickets.json": support_tickets,
    "course_survey.csv": course_survey,
    "product_reviews.csv": product_reviews,
    "readability.csv": readability,
    "intents.tsv": intents,
    "entities.txt": entities,
    "assistant_chats.jsonl": assistant_chats,
    "product_names.csv": product_names,
}


def main(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, make in FILES.items():
        content = make(random.Random(name))
        (directory / name).write_bytes(content.encode() if isinstance(content, str) else content)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "data")
