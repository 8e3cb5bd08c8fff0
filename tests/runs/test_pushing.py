"""`sidequest push` with the real huggingface_hub, against a hub that runs here."""

import base64
import json
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from typer.testing import CliRunner

from sidequest.cli import app
from sidequest.cli import main as run_main
from sidequest.errors import Damaged, SettingsError
from sidequest.runs.pushing import files_of, model_directory, push_model
from tests.helpers.trained import trained_digits

TOKEN = "hf_of_this_test"


class Hub(BaseHTTPRequestHandler):
    """As much of the hub's interface as a push needs; every file is taken as a small one."""

    seen: list = []
    commits: list = []

    def do_GET(self):
        self._answer({"id": "me/emotions", "siblings": [], "sha": "0" * 40})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        Hub.seen.append((self.path, self.headers.get("Authorization")))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer({"error": "Invalid credentials"}, 401)
        elif self.path == "/api/repos/create":
            Hub.commits.append(json.loads(body))
            self._answer({"url": f"http://{self.headers['Host']}/me/emotions", "name": "me/emotions"})
        elif self.path == "/api/validate-yaml":
            assert json.loads(body)["content"].startswith("---")
            self._answer({"errors": [], "warnings": []})
        elif "/preupload/" in self.path:
            names = [entry["path"] for entry in json.loads(body)["files"]]
            self._answer({"files": [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names]})
        elif "/commit/" in self.path:
            Hub.commits.append([json.loads(line) for line in body.decode().splitlines()])
            address = f"http://{self.headers['Host']}/me/emotions/commit/1"
            self._answer({"commitUrl": address, "commitOid": "1" * 40, "success": True})
        else:
            self._answer({}, 404)

    def _answer(self, found, status=200):
        data = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def hub(monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    Hub.seen, Hub.commits = [], []
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
    monkeypatch.setattr("huggingface_hub.hf_api.constants.ENDPOINT", address)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    yield address
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    place = tmp_path_factory.mktemp("trained")
    trained_digits(place)
    return place / "best"


@pytest.fixture
def model(trained, tmp_path):
    place = tmp_path / "run" / "model"
    shutil.copytree(trained / "model", place)
    (place / ".secret").write_text("not for others")
    return place


def test_a_model_arrives_byte_by_byte_in_a_private_repository(hub, model):
    pushed = push_model(model.parent, "me/emotions", message="the first")
    assert pushed.url == f"{hub}/me/emotions/commit/1"
    created, commit = Hub.commits
    assert created["name"] == "emotions"
    assert created["organization"] == "me"
    assert created.get("private") or created.get("visibility") == "private"
    assert commit[0]["value"]["summary"] == "the first"
    sent = {line["value"]["path"]: base64.b64decode(line["value"]["content"]) for line in commit[1:]}
    assert sent == {path.name: path.read_bytes() for path in model.iterdir() if path.name != ".secret"}
    assert set(sent) == {*pushed.files} >= {"README.md", "model.safetensors", "sidequest.json"}
    assert all(token == f"Bearer {TOKEN}" for _, token in Hub.seen)


def test_a_public_repository_is_asked_for_by_name(hub, model):
    push_model(model, "me/emotions", public=True)
    assert not Hub.commits[0].get("private")
    assert Hub.commits[0].get("visibility") != "private"


def test_a_wrong_token_is_refused_in_a_sentence(hub, model, monkeypatch, capsys):
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(SettingsError, match=r"refused 'me/emotions': .*`hf auth login`, or HF_TOKEN"):
        push_model(model, "me/emotions")
    monkeypatch.setattr("sys.argv", ["sidequest", "push", str(model), "me/emotions"])
    with pytest.raises(SystemExit) as ended:
        run_main()
    assert ended.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_hub_that_is_not_there(model, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.hf_api.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with pytest.raises(SettingsError, match="cannot be reached"):
        push_model(model, "me/emotions")
    with pytest.raises(SettingsError, match="'me/two words' is not the name of a repository"):
        push_model(model, "me/two words")


def test_what_is_damaged_or_has_no_card_is_not_sent(hub, model, tmp_path):
    weights = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(weights[:-1] + bytes([weights[-1] ^ 1]))
    with pytest.raises(Damaged, match="does not fit the digest"):
        push_model(model, "me/emotions")
    (model / "model.safetensors").write_bytes(weights)
    (model / "README.md").unlink()
    with pytest.raises(SettingsError, match=r"has no README\.md"):
        push_model(model, "me/emotions")
    with pytest.raises(SettingsError, match="not a model directory"):
        model_directory(tmp_path / "nowhere")
    assert Hub.seen == []


def test_a_dry_run_lists_the_files_and_sends_nothing(hub, model):
    found = CliRunner().invoke(app, ["push", str(model), "me/emotions", "--dry-run"])
    assert found.exit_code == 0, found.output
    assert all(name in found.output for name in files_of(model))
    assert ".secret" not in found.output
    assert Hub.seen == []
