"""What a release is made from: files that repeat the version or the requirements agree, and the Dockerfile is sound."""

import ast
import json
import os
import re
import secrets
import shlex
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
import tomllib
import venv
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from emhrnn.version import __version__

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[1]
EXTRAS = re.search(r"^EXTRAS := (.*)", (ROOT / "Makefile").read_text(), re.M)[1]  # type: ignore[index]
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


def pins(name: str) -> dict[str, str]:
    """Versions by normalised names, as a file of requirements pins them."""
    lines = re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / name).read_text(), re.M)
    return {re.sub(r"[-_.]+", "-", package).lower(): version for package, version in lines}


def has(package: str) -> bool:
    """Whether it is installed here."""
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def needed(package: str, found: set[str]) -> set[str]:
    """The package and, by what is installed here, all that it needs without extras."""
    name = re.sub(r"[-_.]+", "-", package).lower()
    if name not in found:
        found.add(name)
        for line in requires(package) or []:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                needed(requirement.name, found)
    return found


@pytest.mark.parametrize(
    ("locks", "extras"),
    [
        (["requirements.lock"], []),
        (["requirements-torch.lock", "requirements-train.lock"], ["train"]),
        (["requirements-torch.lock", "requirements-dev.lock"], re.findall(r"[\w-]+", EXTRAS)),
    ],
    ids=["predict", "train", "dev"],
)
def test_the_locks_have_all_that_is_needed_in_the_versions_of_the_tests_with_hashes(
    locks: list[str], extras: list[str]
) -> None:
    """`make lock` writes them. The build of torch that wants libraries of CUDA names them itself."""
    locked = {name: version for lock in locks for name, version in pins(lock).items()}
    assert locked.items() <= pins("constraints.txt").items()
    wanted = set[str]()
    for line in PROJECT["dependencies"]:
        needed(Requirement(line).name, wanted)
    asked = [line for extra in extras for line in PROJECT["optional-dependencies"][extra]]
    for requirement in map(Requirement, asked):
        if requirement.name != "emhrnn" and has(requirement.name):
            needed(requirement.name, wanted)
    assert wanted - {"pip"} <= locked.keys()
    for lock in locks:
        blocks = re.split(r"\n(?=[\w.-]+==)", (ROOT / lock).read_text())[1:]
        assert len(blocks) == len(pins(lock))
        assert all(re.search(r"--hash=sha256:[0-9a-f]{64}\b", block) for block in blocks)


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
    assert dict(found)["USER"].isdigit(), "a number: hosts that forbid root cannot look up a name"
    assert dict(found)["USER"] != "0"


def test_the_steps_of_the_dockerfile_work(tmp_path: Path) -> None:
    """One by one, in a clean folder: what is copied builds a wheel, which is installed, and serves; the health check
    finds it. An environment takes the place of the image: apt-get, useradd and what would be downloaded are left out,
    and kernels are not compiled."""
    pytest.importorskip("hatchling", reason="needs the build backend, which the extra dev has")
    source, wheels, image = tmp_path / "source", tmp_path / "wheels", tmp_path / "image"
    venv.create(image, with_pip=False)
    (site,) = image.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    token = secrets.token_hex(16)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PATH": f"{image / 'bin'}:{os.environ['PATH']}", "EMHRNN_BUILD": "0", "EMHRNN_TOKEN": token}

    def run(command: str) -> None:
        pip = f"{sys.executable} -m pip --python {image / 'bin' / 'python'}"
        offline = f"{pip} install --no-deps --no-index"
        command = command.replace("python -m pip wheel", f"{sys.executable} -m pip wheel --no-build-isolation")
        command = command.replace("python -m pip install", offline).replace("/wheels", str(wheels))
        kept = [
            part
            for part in command.split("&&")
            if not re.search(r"apt-get|useradd|/var/lib/apt|--require-hashes", part)
        ]
        if kept:
            line = ["sh", "-c", " && ".join(kept)]
            done = subprocess.run(line, cwd=source, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr

    source.mkdir()
    asked: dict[str, list[str]] = {}
    for name, rest in steps():
        if name == "COPY" and "--from" not in rest:
            *names, place = shlex.split(rest)
            for path in (ROOT / name for name in names):
                if path.is_dir():
                    shutil.copytree(path, source / place, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(path, source)
        elif name == "RUN":
            run(rest)
        elif name == "ENV":
            environment |= dict(pair.split("=") for pair in shlex.split(rest))
        elif name in ("ENTRYPOINT", "HEALTHCHECK"):
            asked[name] = [part.replace("8000", port) for part in json.loads(rest[rest.index("[") :])]
    command = [*asked["ENTRYPOINT"], "demo"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL) as served:
        try:
            for _ in range(600):
                healthy = subprocess.run(asked["HEALTHCHECK"], env=environment, capture_output=True, check=False)
                if healthy.returncode == 0 or served.poll() is not None:
                    break
                time.sleep(0.2)
            assert healthy.returncode == 0, healthy.stderr
        finally:
            served.terminate()


UNIX = {"fcntl", "grp", "posix", "pwd", "resource", "syslog", "termios"}  # modules that Windows does not have


def test_every_module_can_be_imported_on_windows() -> None:
    """Modules of Unix alone are imported under a condition or in a function."""
    paths = sorted((ROOT / "src").rglob("*.py"))
    assert len(paths) > 100
    for path in paths:
        statements = ast.parse(path.read_text(encoding="utf-8")).body
        named = {alias.name for one in statements if isinstance(one, ast.Import) for alias in one.names}
        named |= {one.module for one in statements if isinstance(one, ast.ImportFrom) and one.module}
        assert not UNIX & named, path
