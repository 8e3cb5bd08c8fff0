"""Entries of the store at a URL: what one machine computed another one finds."""

import pytest

from sidequest.errors import DiskError, SettingsError
from sidequest.store import ContentStore


def make(directory):
    (directory / "part").mkdir()
    (directory / "part" / "rows.bin").write_bytes(bytes(range(256)))
    return {"score": 0.5}


@pytest.mark.parametrize("kind", ["directory", "memory"])
def test_another_machine_finds_what_one_has_made(tmp_path, monkeypatch, kind):
    url = f"file://{tmp_path}/shared" if kind == "directory" else "memory://sidequest-test"
    one, two = ContentStore("trials", tmp_path / "one"), ContentStore("trials", tmp_path / "two")
    one.put("aa11", make)
    assert two.get("aa11") is None  # the control: without a URL they share nothing
    monkeypatch.setenv("SIDEQUEST_STORE", url)
    one.put("bb22", make)
    found = two.get("bb22")
    assert found is not None
    assert dict(found.data) == {"score": 0.5}
    assert (found.directory / "part" / "rows.bin").read_bytes() == bytes(range(256))
    monkeypatch.delenv("SIDEQUEST_STORE")
    assert two.get("bb22") is not None  # it was brought here


def test_what_arrives_damaged_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setenv("SIDEQUEST_STORE", f"file://{tmp_path}/shared")
    ContentStore("trials", tmp_path / "one").put("bb22", make)
    (blob,) = (tmp_path / "shared").rglob("*.zip")
    blob.write_bytes(blob.read_bytes()[:-30])
    entry = ContentStore("trials", tmp_path / "two").get_or_make("bb22", make)
    assert entry.made


def test_a_password_in_the_url_is_refused_and_not_repeated(tmp_path, monkeypatch):
    monkeypatch.setenv("SIDEQUEST_STORE", "ftp://me:s3cret@host/x")
    with pytest.raises(SettingsError, match="SIDEQUEST_STORE") as refused:
        ContentStore("trials", tmp_path).get("aa")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    "error", [PermissionError("no access"), RuntimeError("endpoint is gone\nmore of it"), TimeoutError()]
)
@pytest.mark.parametrize("call", ["cat_file", "pipe_file"])
def test_a_store_that_refuses_is_named_in_one_sentence(tmp_path, monkeypatch, error, call):
    from fsspec.implementations.memory import MemoryFileSystem

    monkeypatch.setenv("SIDEQUEST_STORE", "memory://refusing?token=s3cret")
    ContentStore("trials", tmp_path / "one").put("aa11", make)  # the control: it works

    def refuse(*args, **kwargs):
        raise error

    monkeypatch.setattr(MemoryFileSystem, call, refuse)
    with pytest.raises(DiskError, match=f"SIDEQUEST_STORE=memory://.*{type(error).__name__}") as refused:
        ContentStore("trials", tmp_path / "two").get_or_make("bb22", make)
    assert "\n" not in str(refused.value)
    assert "s3cret" not in str(refused.value)
