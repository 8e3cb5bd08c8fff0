"""The version of the training code: what a reader changes leaves it, what the machine sees changes it."""

import pytest

from sidequest.search import code_version
from sidequest.search.code_version import code_digest, selection_code_version, training_code_version
from sidequest.store import ENTRY

SOURCE = b'''"""Of the module."""

def double(x):
    """Of the function."""
    return 2 * x  # why
'''


def digest(source):
    return code_digest([("a.py", source)])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"# why", b"# because"),
        (b"Of the function.", b"Twice."),
        (b"Of the module.", b"Doubles."),
        (b"\n\n", b"\n\n\n"),
    ],
)
def test_comments_docstrings_and_blank_lines_change_nothing(old, new):
    changed = SOURCE.replace(old, new)
    assert changed != SOURCE
    assert digest(changed) == digest(SOURCE)


@pytest.mark.parametrize(("old", "new"), [(b"2 * x", b"x * 2"), (b"(x)", b"(x, y=1)"), (b"2 * x", b'"""2"""')])
def test_code_changes_it(old, new):
    assert digest(SOURCE.replace(old, new)) != digest(SOURCE)


def test_a_file_moved_changes_it():
    assert code_digest([("b.py", SOURCE)]) != digest(SOURCE)


def test_the_version_is_kept_by_the_bytes_of_the_files(tmp_path, monkeypatch):
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))
    version = code_version._version.__wrapped__
    (tmp_path / "a.py").write_bytes(SOURCE)
    monkeypatch.setattr(code_version, "PACKAGE", tmp_path)
    first = version(("a.py",))
    assert first == digest(SOURCE)
    with monkeypatch.context() as patch:
        patch.setattr(code_version, "code_digest", None)  # found, not made
        assert version(("a.py",)) == first
    (tmp_path / "a.py").write_bytes(SOURCE.replace(b"2 * x", b"x * 2"))
    assert version(("a.py",)) != first
    for entry in (tmp_path / "cache").glob(f"code/*/*/{ENTRY}"):
        entry.write_text("{}")  # damaged: made again
    (tmp_path / "a.py").write_bytes(SOURCE)
    assert version(("a.py",)) == first


def test_methods_count_for_selections_and_not_for_trials():
    assert training_code_version() != selection_code_version()


def test_a_paper_counts_with_its_own_package_alone(monkeypatch):
    rooms = []
    monkeypatch.setattr(code_version, "_version", lambda found: rooms.append(found) or "")
    selection_code_version("alphavil")
    (found,) = rooms
    assert {"learning", "numerics", "methods/alphavil", "methods/base.py", "methods/baselines.py"} <= {*found}
    assert not {"methods", "methods/auto", "methods/autosem"} & {*found}
