"""Runs on the Hugging Face Hub: a repository with the file that `pack` writes, and the model card as its README.

    model.emhrnn     the run (pack.py): checked like any other file before anything of it is loaded
    README.md        its card, for people

`hf://user/name` names such a repository wherever a run is given; `hf://user/name@v1` one of its versions.
"""

import re
import tempfile
from pathlib import Path
from typing import Any

from emhrnn.errors import CheckpointError, DataError
from emhrnn.extras import need
from emhrnn.training.pack import pack
from emhrnn.training.run import CARD

FILE = "model.emhrnn"
NAME = re.compile(r"hf:/+([\w.-]+/[\w.-]+)(?:@([\w./-]+))?")  # a Path has one slash of the two
HEADER = """---
library_name: emhrnn
pipeline_tag: text-classification
tags: [emhrnn, text-classification, explainability]
---

To use it: `pip install 'emhrnn[hub]'`, then `emhrnn.load("hf://{name}")` in Python, or in a terminal
`emhrnn explain hf://{name} 'text'`.

"""


def pushed(folder: Path, name: str, *, private: bool, token: str | None) -> str:
    """Upload a run to the repository `user/name`, which is made if it is not there. The address of what was uploaded.

    Raises:
        DataError: the name is none, or the Hub refused the upload.
        CheckpointError: the folder is no finished run.
    """
    api = _api(token)
    if not NAME.fullmatch(f"hf://{name}") or "@" in name:
        raise DataError(f"{name!r} is no name of a repository; give user/name, as in push_to_hub('ada/reviews')")
    with tempfile.TemporaryDirectory(prefix="emhrnn-") as scratch:
        upload = Path(scratch)
        pack(folder, upload / FILE)
        card = folder / CARD
        text = card.read_text(encoding="utf-8") if card.is_file() else f"# {name}\n"
        (upload / "README.md").write_text(HEADER.format(name=name) + text, encoding="utf-8")
        try:
            api.create_repo(name, private=private, exist_ok=True)
            done = api.upload_folder(repo_id=name, folder_path=upload, commit_message="Upload a run of emhrnn")
        except Exception as error:  # the library has many, of several libraries below it
            raise DataError(f"the Hub refused {name}: {_said(error)}; is the token right, and may it write?") from error
    return str(done.commit_url)


def downloaded(name: str) -> Path:
    """The file of a run on the Hub, from the cache of the library if it is there.

    Raises:
        CheckpointError: there is no such repository, it has no run, or the Hub cannot be reached.
    """
    match = NAME.fullmatch(name)
    if match is None:
        raise CheckpointError(
            f"{name}: not the name of a run on the Hub; give hf://user/name or hf://user/name@version"
        )
    repository, version = match.groups()
    api = _api(None)
    try:
        return Path(api.hf_hub_download(repository, FILE, revision=version))
    except Exception as error:
        raise CheckpointError(
            f"hf://{repository}: cannot get {FILE} from the Hub: {_said(error)}; is the name right, and was it "
            "uploaded by push_to_hub? Private ones need HF_TOKEN"
        ) from error


def _api(token: str | None) -> Any:
    need("huggingface_hub", "the Hugging Face Hub", "hub")
    from huggingface_hub import HfApi

    return HfApi(token=token)


def _said(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
