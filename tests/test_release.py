"""What a release is made from: files that repeat the version or the requirements agree, and the Dockerfile is sound."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from emhrnn.version import __version__

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def steps() -> list[tuple[str, str]]:
    """Instruction and arguments of each step of the Dockerfile."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if line and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in joined.splitlines())]


def test_versions_agree() -> None:
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == __version__
    assert f'version = "{__version__}"' in (ROOT / "recipe" / "meta.yaml").read_text()


def test_the_recipe_asks_for_what_the_package_asks_for() -> None:
    recipe = (ROOT / "recipe" / "meta.yaml").read_text()
    run = recipe[recipe.index("  run:") : recipe.index("  run_constrained:")]
    asked = {line.strip(" -").replace(" ", "").replace("_", "-") for line in run.splitlines()[1:] if line.strip()}
    assert asked - {"python"} == set(PROJECT["dependencies"])


def test_the_address_is_one() -> None:
    address = PROJECT["urls"]["Repository"]
    for name in ("CITATION.cff", "recipe/meta.yaml"):
        assert address in (ROOT / name).read_text()
    assert all(url.startswith(address) for url in PROJECT["urls"].values())


@pytest.mark.parametrize("path", sorted(ROOT.glob(".github/workflows/*.yml")), ids=lambda path: path.name)
def test_workflows_pin_actions_and_take_few_rights(path: Path) -> None:
    workflow: dict[Any, Any] = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        for action in [step["uses"] for step in job.get("steps", []) if "uses" in step]:
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d[\d.]*|release/v1)", action), action
        if "uses" in job:
            assert (ROOT / job["uses"]).is_file()


def test_the_dockerfile_is_sound() -> None:
    """What hadolint would look for."""
    found = steps()
    names = [name for name, _ in found]
    assert not {"ADD", "MAINTAINER"} & set(names)
    for name, rest in found:
        if name == "FROM":
            assert re.match(r"python:3\.\d+-slim-\w+( AS \w+)?$", rest), "an image with a tag"
        if name == "RUN" and "apt-get install" in rest:
            assert "--no-install-recommends" in rest
            assert "rm -rf /var/lib/apt/lists/*" in rest
        if name == "RUN" and "pip " in rest:
            assert "--no-cache-dir" in rest
        if name in ("CMD", "ENTRYPOINT"):
            assert rest.startswith("["), "as a list, so that signals reach the server"
        if name == "COPY" and "--from" not in rest:
            *sources, _ = shlex.split(rest)
            kept = (ROOT / ".dockerignore").read_text().splitlines()
            assert all((ROOT / source).exists() and f"!{source}" in kept for source in sources)
        assert "sudo" not in rest
    last = names[len(names) - names[::-1].index("FROM") :]
    assert last.count("USER") == last.count("HEALTHCHECK") == last.count("ENTRYPOINT") == last.count("CMD") == 1
    assert last.index("USER") < last.index("ENTRYPOINT")
    assert dict(found)["USER"] != "root"
