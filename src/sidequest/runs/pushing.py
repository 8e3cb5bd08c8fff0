"""An exported model to a model hub: its directory as it is, card and all, by `huggingface_hub`.

The hub is the one that `HF_ENDPOINT` names, and the account the one that is logged in there (`hf auth login`, or `HF_TOKEN`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sidequest.errors import SettingsError
from sidequest.models.saved import ModelCard, check_weights
from sidequest.report.model_card import PAGE


@dataclass(frozen=True)
class Pushed:
    """url: of the commit; files: what was sent, relative to the model's directory."""

    url: str
    files: list[str]


def model_directory(path: Path) -> Path:
    """The model of a run directory, or a model directory itself; refused where it is damaged or has no card."""
    place = path / "model" if (path / "model" / ModelCard.FILE).is_file() else path
    if not place.is_dir():
        raise SettingsError(f"{path}: not a model directory; `sidequest train` makes one")
    check_weights(place, ModelCard.read_from(place))
    if not (place / PAGE).is_file():
        raise SettingsError(f"{place}: has no {PAGE}, the card that readers of a hub see; `sidequest train` writes it")
    return place


def files_of(directory: Path) -> dict[str, int]:
    """What would be sent, with its size in bytes. Hidden files stay here; a link would send what it leads to."""
    for path in sorted(directory.rglob("*")):
        if path.is_symlink():
            raise SettingsError(f"{path}: is a symbolic link; only plain files are sent to a hub. Remove it first")
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    names = {path.relative_to(directory).as_posix(): path.stat().st_size for path in files}
    return {name: size for name, size in names.items() if not any(part.startswith(".") for part in name.split("/"))}


def push_model(
    directory: Path, repository: str, *, public: bool = False, branch: str | None = None, message: str = ""
) -> Pushed:
    """Make the repository if it is not there (private unless `public`), and send the model in one commit.

    repository: `NAME` or `OWNER/NAME`. branch: an existing one; the main one by default.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError

    place = model_directory(directory)
    files = list(files_of(place))
    api: Any = HfApi(library_name="sidequest")
    try:
        made = api.create_repo(repository, private=not public, exist_ok=True, repo_type="model")
        commit = api.upload_folder(
            repo_id=made.repo_id,
            folder_path=place,
            repo_type="model",
            revision=branch,
            commit_message=message or "A model of sidequest",
            allow_patterns=files,
        )
    except HFValidationError as error:
        raise SettingsError(f"{repository!r} is not the name of a repository: {error}") from None
    except LocalTokenNotFoundError:
        raise SettingsError(f"{api.endpoint}: nobody is logged in; `hf auth login`, or set HF_TOKEN") from None
    except HfHubHTTPError as error:
        raise SettingsError(f"{api.endpoint}: refused {repository!r}: {_reason(error)}") from None
    except Exception as error:  # of whatever HTTP library the hub's package uses: no such host, refused, timed out
        raise SettingsError(f"{api.endpoint}: cannot be reached: {str(error) or type(error).__name__}") from error
    return Pushed(str(commit.commit_url), files)


def _reason(error: Any) -> str:
    """The first line that says something, with a hint where the account is the cause."""
    status = getattr(error.response, "status_code", None)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    hint = (
        "; is the right account logged in, with the right to write? `hf auth login`, or HF_TOKEN"
        if status in (401, 403)
        else ""
    )
    return (lines[0] if lines else f"status {status}") + hint
