"""Readers: what they read, and where they say a file is wrong."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sidequest.errors import DataError
from sidequest.tasks.readers import ReadSettings, guess_format, read_file, read_hub, read_idx, read_saved
from sidequest.tasks.readers.table import Table

Write = Callable[[str, "str | bytes"], Path]
PLAIN = ReadSettings(quoting="none")


def rows(table: Table) -> list[tuple]:
    return list(zip(*(column.to_pylist() for column in table.columns.values()), strict=True))


# ---- csv and tsv -----------------------------------------------------------------------------------------------------------


def test_csv_with_multi_line_text_and_windows_line_endings(write: Write) -> None:
    path = write("a.csv", 'text,label\r\n"first line\nsecond, ""quoted"" line",good\r\nplain,bad\r\n\r\n"last",good')
    table = read_file(path)
    assert rows(table) == [('first line\nsecond, "quoted" line', "good"), ("plain", "bad"), ("last", "good")]
    assert table.lines.tolist() == [2, 4, 6]


def test_csv_agrees_with_the_csv_module_on_random_texts(write: Write) -> None:
    rng = random.Random(0)
    pieces = ['"', ",", "\n", "\r\n", "a", " ", "é", "\t", "\u2028", "''", ""]
    for trial in range(60):
        data = [["".join(rng.choices(pieces, k=rng.randint(0, 6))) + "x" for _ in range(3)] for _ in range(20)]
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator=rng.choice(["\n", "\r\n"])).writerows([["a", "b", "c"], *data])
        table = read_file(write(f"{trial}.csv", buffer.getvalue()))
        assert rows(table) == [tuple(row) for row in data]
        lines = buffer.getvalue().splitlines(keepends=True) if "\u2028" not in buffer.getvalue() else None
        if lines is not None:  # the line of a row is where its first field stands
            for line, row in zip(table.lines, data, strict=True):
                start = row[0].split("\n")[0].split("\r")[0].replace('"', '""')
                assert start in lines[line - 1]


def test_a_byte_that_is_not_utf8_is_named_with_line_and_remedy(write: Write) -> None:
    path = write("a.csv", b'text,label\r\n"two\r\nlines",good\r\ncaf\xe9,bad\r\n')
    with pytest.raises(DataError, match=r"a\.csv, line 4: byte 0xe9 at position 4 of the line .* `encoding: cp1252`"):
        read_file(path)
    assert rows(read_file(path, ReadSettings(encoding="cp1252")))[1] == ("café", "bad")


def test_a_hint_is_an_encoding_that_can_read_the_file(write: Write) -> None:
    path = write("a.csv", b"text,label\ncaf\xe9 \x81,bad\n")  # 0x81 is no character of cp1252
    with pytest.raises(DataError, match="`encoding: latin-1`"):
        read_file(path)
    utf16 = write("b.csv", "text,label\nx,y\n".encode("utf-16"))
    with pytest.raises(DataError, match="`encoding: utf-16`"):
        read_file(utf16)
    assert rows(read_file(utf16, ReadSettings(encoding="utf-16"))) == [("x", "y")]
    with pytest.raises(DataError, match="unknown encoding 'utf9'"):
        read_file(path, ReadSettings(encoding="utf9"))


def test_rows_of_wrong_width_are_named_or_skipped(write: Write) -> None:
    path = write("a.csv", "text,label\nx,1\ny\n\nz,1,2\nw,0\n")
    with pytest.raises(DataError, match=r"a\.csv, line 3: 1 fields where 2 are expected \(and 1 more such rows\)"):
        read_file(path)
    table = read_file(path, ReadSettings(bad_rows="skip"))
    assert rows(table) == [("x", "1"), ("w", "0")]
    assert table.lines.tolist() == [2, 6]
    assert table.notes == ("2 malformed rows left out",)


def test_a_tab_in_a_text_of_an_unquoted_tsv_is_named(write: Write) -> None:
    path = write("a.tsv", 'text\tlabel\n"a" quote\t1\n"b\tc"\t0\n')
    with pytest.raises(
        DataError, match=r"a\.tsv, line 3: 3 fields where 2 are expected\. A tab inside a text must be replaced"
    ):
        read_file(path, PLAIN)


def test_an_unclosed_quote_does_not_swallow_the_file(write: Write) -> None:
    path = write("a.tsv", 'text\tlabel\nfine\t1\n"unclosed\t0\nmore\t1\n')
    with pytest.raises(DataError, match=r"a\.tsv, line 3: .*`quoting: none`"):
        read_file(path)
    assert rows(read_file(path, PLAIN)) == [("fine", "1"), ('"unclosed', "0"), ("more", "1")]


def test_glue_habits_quotes_are_characters_and_a_mark_opens_the_file(write: Write) -> None:
    path = write("a.tsv", '\ufeffQuality\t#1 String\r\n1\t" open quote\u2028 and ""\r\n0\tit\'s\r\n')
    table = read_file(path, PLAIN)
    assert list(table.columns) == ["Quality", "#1 String"]
    assert rows(table) == [("1", '" open quote\u2028 and ""'), ("0", "it's")]


@pytest.mark.parametrize("quoting", ["standard", "none"])
def test_headers(write: Write, quoting: str) -> None:
    path = write("a.tsv", "x\t1\ny\t0\n")
    without = read_file(path, ReadSettings(header=False, quoting=quoting))
    assert list(without.columns) == ["0", "1"]
    assert rows(without) == [("x", "1"), ("y", "0")]
    named = read_file(path, ReadSettings(header=("text", "label"), quoting=quoting))
    assert list(named.columns) == ["text", "label"]
    with pytest.raises(DataError, match="2 fields where 3 are expected"):
        read_file(path, ReadSettings(header=("a", "b", "c"), quoting=quoting))


@pytest.mark.parametrize("quoting", ["standard", "none"])
def test_empty_and_repeated_names_of_a_header_are_made_unique(write: Write, quoting: str) -> None:
    path = write("a.csv", "v1,v2,,v2,v2.1,\nham,hi,,x,y,\n")
    table = read_file(path, ReadSettings(quoting=quoting))
    assert list(table.columns) == ["v1", "v2", "Unnamed: 2", "v2.2", "v2.1", "Unnamed: 5"]
    assert rows(table) == [("ham", "hi", "", "x", "y", "")]
    assert table.notes == ("the header names 'v2' twice: here the second is 'v2.2'",)


@pytest.mark.parametrize("quoting", ["standard", "none"])
def test_lines_before_the_header_are_skipped_and_counted(write: Write, quoting: str) -> None:
    path = write("a.csv", "An export\r\nof today, all of it\r\n\r\ntext,label\r\nx,1\r\ny,0\r\n")
    with pytest.raises(DataError, match=r"line 2: 2 fields where 1 are expected .*say `skip_rows: 1`"):
        read_file(path, ReadSettings(quoting=quoting))
    table = read_file(path, ReadSettings(quoting=quoting, skip_rows=3))
    assert list(table.columns) == ["text", "label"]
    assert table.lines.tolist() == [5, 6]
    with pytest.raises(DataError, match="`skip_rows: 9` leaves nothing of 7 lines"):
        read_file(path, ReadSettings(quoting=quoting, skip_rows=9))


@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_list_is_read_like_json_lines_and_knows_its_lines(write: Write, indent: int | None) -> None:
    items = [{"text": "a, [b]", "label": 1}, {"label": 0, "text": 'say "x\n"'}]
    table = read_file(write("a.json", " \n" + json.dumps(items, indent=indent) + "\n"))
    assert rows(table) == [("a, [b]", 1), ('say "x\n"', 0)]
    assert table.lines.tolist() == ([2, 2] if indent is None else [3, 7])


@pytest.mark.parametrize(
    "text",
    [
        '{"version": "1", "data": [\n{"a": 1},\n{"a": 2}]}',
        '{\n"questions": [{"a": 1},\n  {"a": 2}],\n "n": {}}',
        '{"n": [1],\n"rows": [{"a": 1}\n, {"a": 2}]}\n',
    ],
)
def test_a_list_inside_the_only_object_of_a_file_is_its_rows(write: Write, text: str) -> None:
    table = read_file(write("a.json", text))
    assert rows(table) == [(1,), (2,)]
    assert table.lines.tolist() == [text[: text.index(item)].count("\n") + 1 for item in ('{"a": 1', '{"a": 2')]


def test_the_only_line_of_a_file_of_rows_is_a_row(write: Write) -> None:
    table = read_file(write("a.jsonl", '{"messages": [{"role": "user"}], "rating": 1}'))
    assert list(table.columns) == ["messages", "rating"]


def test_fasttext_lines(write: Write) -> None:
    table = read_file(write("a.ft", "__label__good  a fine day \n\n__label__bad rain,  again\r\n"))
    assert rows(table) == [("good", "a fine day"), ("bad", "rain,  again")]
    assert table.lines.tolist() == [1, 3]
    several = read_file(write("b.txt", "__label__a __label__b x\ny\n"), ReadSettings(format="fasttext"))
    assert rows(several) == [(["a", "b"], "x"), ([], "y")]
    for text, message in (("a b\n", "no line begins with __label__"), ("__label__ x\n", "line 1: __label__ without")):
        with pytest.raises(DataError, match=message):
            read_file(write("a.ft", text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": [{"b": 1}],\n "c": [{"d": 1}]}', "one object with several lists of objects: 'a', 'c'"),
        ('{\n"a": {"b": 1}, "c": 2\n}', "none of 'a', 'c' is a list of objects"),
        ('[{"a": 1},\n{"a": 2}', r"line 2: not JSON: a list goes on with ',' or ends with '\]'"),
        ('[{"a": 1},\n{"a" 2}]', "line 2: not JSON: Expecting ':'"),
        ('[{"a": 1},\n\n 7]', "line 3: each item of the list must be one JSON object .*found int"),
        ("[]", "the file has no rows"),
        ('["a", 1]\n["b", 2]\n', "found str"),
        ('[{"a": 1}]\n[{"a": 2}]', "line 2: the list has ended, but the file goes on"),
        ('{\n  "data": []\n}', "none of 'data' is a list of objects"),
        ('{\n  "data": [', "line 1: not JSON: .*An object per line, or one list of objects, is needed"),
    ],
)
def test_json_that_is_no_list_of_objects_is_refused_with_its_line(write: Write, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_file(write("a.json", text))


@pytest.mark.parametrize("content", ["", "\n\n", "text,label\n"])
def test_files_without_rows_are_refused(write: Write, content: str) -> None:
    with pytest.raises(DataError, match=r"empty|no rows"):
        read_file(write("a.csv", content))


def test_a_text_longer_than_the_csv_modules_limit(write: Write) -> None:
    limit = csv.field_size_limit()
    table = read_file(write("a.csv", f'text,label\n"{"x" * (limit + 1)}",1\n'))
    assert len(table.columns["text"][0].as_py()) == limit + 1
    assert csv.field_size_limit() == limit


def test_compressed_text_and_other_delimiters(write: Write) -> None:
    packed = write("a.csv.gz", gzip.compress(b"text;label\nx;1\n"))
    assert rows(read_file(packed, ReadSettings(delimiter=";"))) == [("x", "1")]
    with pytest.raises(DataError, match="not a complete gzip file"):
        read_file(write("b.csv.gz", b"text,label\n"))


# ---- json lines and parquet ------------------------------------------------------------------------------------------------


def test_jsonl_types_missing_keys_and_mixed_values(write: Write) -> None:
    table = read_file(write("a.jsonl", '{"t": "a", "n": 1, "m": 1}\r\n\n{"t": "b", "w": ["x", "y"], "m": "one"}\n'))
    assert table.lines.tolist() == [1, 3]
    assert table.columns["t"].to_pylist() == ["a", "b"]
    assert table.columns["n"].to_pylist() == [1, None]
    assert table.columns["w"].to_pylist() == [None, ["x", "y"]]
    assert table.columns["m"].to_pylist() == ["1", "one"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1}\n{"a": }\n', r"line 2: not JSON: .* at character 7"),
        ('{"a": 1}\n[1]\n', r"line 2: each line must be one JSON object .* found list"),
        ("\n", "no rows"),
    ],
)
def test_jsonl_faults(write: Write, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_file(write("a.jsonl", content))


def test_parquet_types_become_plain(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table(
        {
            "text": pa.array(["x", "y"], type=pa.large_string()),
            "kind": pa.array(["k", "k"]).dictionary_encode(),
            "words": pa.array([["a"], ["b", "c"]], type=pa.large_list(pa.large_string())),
        }
    )
    pq.write_table(table, path)
    read = read_file(path)
    assert rows(read) == [("x", "k", ["a"]), ("y", "k", ["b", "c"])]
    assert [str(column.type) for column in read.columns.values()] == ["string", "string", "list<item: string>"]
    path.write_bytes(b"nonsense")
    with pytest.raises(DataError, match="not a parquet file"):
        read_file(path)


# ---- words per line --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", [" ", "\t", "  "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_conll_columns(write: Write, mark: str, end: str) -> None:
    lines = [
        "-DOCSTART- -X- O",
        "",
        "EU NNP I-ORG",
        "rejects VBZ O",
        "",
        "",
        "Peter NNP I-PER",
        "-DOCSTART- -X- O",
        "Ende NN O",
    ]
    path = write("a.conll", end.join(line.replace(" ", mark) for line in lines))
    table = read_file(path)
    assert table.columns["0"].to_pylist() == [["EU", "rejects"], ["Peter"], ["Ende"]]
    assert table.columns["2"].to_pylist() == [["I-ORG", "O"], ["I-PER"], ["O"]]
    assert table.lines.tolist() == [3, 7, 9]


def test_conll_faults(write: Write) -> None:
    with pytest.raises(DataError, match=r"line 3: 2 columns where the first word has 3"):
        read_file(write("a.conll", "a b c\n\na b\n"))
    with pytest.raises(DataError, match="no words"):
        read_file(write("b.conll", "\n-DOCSTART- O\n\n"))


def test_conllu_skips_ranges_and_empty_nodes(write: Write) -> None:
    def word(number: str, form: str, upos: str) -> str:
        return "\t".join([number, form, "_", upos, *["_"] * 6])

    lines = [
        "# sent_id = 1",
        word("1-2", "vámonos", "_"),
        word("1", "vamos", "VERB"),
        word("2", "nos", "PRON"),
        word("2.1", "hidden", "NOUN"),
        "",
        "# sent_id = 2",
        word("1", "#", "SYM"),
        word("2", "New York", "PROPN"),
        "",
    ]
    table = read_file(write("a.conllu", "\n".join(lines)))
    assert table.columns["FORM"].to_pylist() == [["vamos", "nos"], ["#", "New York"]]
    assert table.columns["UPOS"].to_pylist() == [["VERB", "PRON"], ["SYM", "PROPN"]]
    assert table.lines.tolist() == [3, 8]


def test_conllu_faults(write: Write) -> None:
    with pytest.raises(DataError, match="line 2: 3 tab-separated columns where CoNLL-U has 10"):
        read_file(write("a.conllu", "# c\n1\ta\tb\n"))
    with pytest.raises(DataError, match=r"line 1: ID must be .* found 'x'"):
        read_file(write("b.conllu", "\t".join(["x", *["_"] * 9])))


# ---- images ----------------------------------------------------------------------------------------------------------------


def idx(array: np.ndarray, code: int = 0x08) -> bytes:
    return bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def test_idx_images_and_labels(write: Write) -> None:
    images = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
    table = read_idx(
        write("i-idx3-ubyte.gz", gzip.compress(idx(images))),
        write("l-idx1-ubyte", idx(np.array([7, 1], dtype=np.uint8))),
    )
    assert np.array_equal(table.columns["image"][:, 0], images)
    assert table.columns["label"].tolist() == [7, 1]
    targets = read_idx(write("i", idx(images)), write("f", idx(np.array([0.5, -1], dtype=">f4"), 0x0D))).columns[
        "label"
    ]
    assert targets.tolist() == [0.5, -1]


def test_idx_faults(write: Write) -> None:
    images = np.zeros((2, 3, 4), dtype=np.uint8)
    good = write("good", idx(images))
    with pytest.raises(DataError, match="begins with the bytes 6e 6f"):
        read_idx(write("a", b"no idx"), None)
    with pytest.raises(DataError, match=r"promises \(2, 3, 4\) = 24 bytes of data, found 23"):
        read_idx(write("b", idx(images)[:-1]), None)
    with pytest.raises(DataError, match=r"one label per image"):
        read_idx(good, write("c", idx(np.zeros(3, dtype=np.uint8))))


# ---- formats and missing files ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.csv", "csv"),
        ("a.TSV", "tsv"),
        ("a.jsonl.gz", "jsonl"),
        ("a.b.parquet", "parquet"),
        ("en-ud-dev.conllu", "conllu"),
        ("x.conll", "conll"),
        ("train-images-idx3-ubyte.gz", "idx"),
        ("notes.txt", None),
    ],
)
def test_formats_by_name(name: str, format: str | None) -> None:
    assert guess_format(Path(name)) == format


def test_files_that_can_not_be_read(write: Write, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_file(tmp_path / "none.csv")
    with pytest.raises(DataError, match="say `format:` with one of csv"):
        read_file(write("a.txt", "x"))


def test_a_column_is_found_by_name_or_position(write: Write) -> None:
    table = read_file(write("a.csv", "text,label\nx,1\n"))
    assert table.name_of(-1) == "label"
    assert table.name_of(0) == "text"
    with pytest.raises(DataError, match=r"a\.csv: there is no column 'txt'\. Did you mean 'text'\?"):
        table.column("txt")
    with pytest.raises(DataError, match="no column 2; columns are numbered 0 to 1"):
        table.column(2)


# ---- hugging face ----------------------------------------------------------------------------------------------------------


def test_saved_datasets(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["no", "yes"]),
            "tags": datasets.Sequence(datasets.ClassLabel(names=["O", "B-X"])),
        }
    )
    data = {"text": ["a", "b", "c"], "label": [1, 0, -1], "tags": [[0, 1], [], [1]]}
    whole = datasets.Dataset.from_dict(data, features=features)
    whole.select([2, 1, 0]).save_to_disk(tmp_path / "one")
    table = read_file(tmp_path / "one")
    assert table.columns["text"].to_pylist() == ["c", "b", "a"]
    assert table.columns["label"].to_pylist() == [None, "no", "yes"]
    assert table.columns["tags"].to_pylist() == [["B-X"], [], ["O", "B-X"]]
    assert table.label_names == {"label": ("no", "yes"), "tags": ("O", "B-X")}

    datasets.DatasetDict({"train": whole, "test": whole}).save_to_disk(tmp_path / "dict")
    assert len(read_saved(tmp_path / "dict", "test")) == 3
    with pytest.raises(DataError, match=r"no split 'tset'\. Did you mean 'test'"):
        read_saved(tmp_path / "dict", "tset")
    with pytest.raises(DataError, match="holds the splits"):
        read_saved(tmp_path / "dict")
    with pytest.raises(DataError, match="not a directory written by `save_to_disk`"):
        read_saved(tmp_path)


def test_a_hub_without_network_gives_one_clear_message(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")

    def unreachable(*args: object, **options: object) -> None:
        raise ConnectionError("Couldn't reach the hub\n(long trace)")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    with pytest.raises(
        DataError, match=r"hub:org/name/cfg\[train\]: can't be loaded from the hub: Couldn't reach the hub\. Without"
    ):
        read_hub("org/name", "cfg", "train")


def test_jsonl_of_a_real_benchmark_is_what_json_says(shared_data: Path) -> None:
    path = shared_data / "superglue" / "CB" / "train.jsonl"
    expected = [json.loads(line) for line in path.read_text().splitlines()]
    table = read_file(path)
    assert [dict(zip(table.columns, row, strict=True)) for row in rows(table)] == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "a\\ud800"}', "line 2: column 'text' holds half of a character"),
        ('{"text": ' + "[" * 100_000 + "]" * 100_000 + "}", "line 2: not read: nested too deeply"),
    ],
)
def test_hostile_json_is_refused_with_its_line(write: Callable[..., Path], line: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_file(write("t.jsonl", '{"text": "fine"}\n' + line))


def test_numbers_beyond_64_bits_are_texts(write: Callable[..., Path]) -> None:
    table = read_file(write("t.jsonl", f'{{"n": {10**30}}}\n{{"n": 1}}\n'))
    assert table.columns["n"].to_pylist() == [str(10**30), "1"]
