"""What an installation takes: builds a wheel, installs it into an empty environment, and measures there.

python -m benchmarks.install --out results/install.json     # needs a package index; --wheel FILE: one that is there

MB are millions of bytes on disk, of everything in site-packages but pip. Seconds are CPU seconds of the whole command,
user and system: the first time right after installing, then the median of 11. The load of the machine is recorded,
because busy neighbours on a core slow a process down. The memory of the server is VmRSS after 40 texts. `--imdb RUN`
adds the size of a run of `emhrnn train imdb_aclImdb_train.jsonl.gz --vectors glove6B_100d_top100k_fp16.npz`.
"""

import argparse
import json
import math
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from pathlib import Path

from emhrnn.compiler import capability
from emhrnn.files import write_json
from emhrnn.training.pack import pack
from emhrnn.training.run import SHIPPED, WEIGHTS

ROOT = Path(__file__).parents[1]
TEXT = "The soup was not bad at all."
EXPLAIN = ("explain", "demo", TEXT)
TIMES = 11  # that a command is run, for its median
ASKED = 40  # texts, before the memory of the server is read


def cpu_seconds(*command: str | Path, cwd: Path) -> float:
    """Of a command that must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    output(*command, cwd=cwd)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def median_seconds(*command: str | Path, cwd: Path) -> float:
    return round(statistics.median(cpu_seconds(*command, cwd=cwd) for _ in range(TIMES)), 3)


def output(*command: str | Path, cwd: Path) -> str:
    """What a command prints, where there is no compiler and an empty cache."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"EMHRNN_CACHE": str(cwd / "cache"), "CXX": "no-compiler-here"}
    return subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def server_megabytes(emhrnn: Path, cwd: Path) -> float:
    """Resident memory of `emhrnn serve demo`."""
    command = [str(emhrnn), "serve", "demo", "--port", "0"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with subprocess.Popen(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        try:
            assert server.stdout is not None
            address = next(found[0] for line in server.stdout if (found := re.search(r"http://[\w.:]+", line)))
            body = json.dumps({"texts": [TEXT] * ASKED}).encode()
            for call in ("predict", "explain"):
                headers = {"content-type": "application/json"}
                request = urllib.request.Request(f"{address}/v1/{call}", body, headers)  # noqa: S310 - http:// of our server
                urllib.request.urlopen(request, timeout=60).read()  # noqa: S310 - the same
            status = Path(f"/proc/{server.pid}/status").read_text()
        finally:
            server.terminate()
    return round(int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024 / 1e6, 1)


def same_answer(python: str, wheel: Path, binaries: Path, folder: Path) -> str:
    """The version of another Python, where the wheel predicts and explains as it does in the first environment."""
    place = folder / Path(python).name
    subprocess.run([python, "-m", "venv", place], check=True)
    subprocess.run([place / "bin" / "python", "-m", "pip", "install", "--quiet", wheel.resolve()], check=True)
    expected, found = (
        json.loads(output(bin / "emhrnn", *EXPLAIN, "--json", cwd=folder)) for bin in (binaries, place / "bin")
    )
    assert found["predicted"] == expected["predicted"]
    assert found["probabilities"].keys() == expected["probabilities"].keys()
    for name, share in expected["probabilities"].items():
        assert math.isclose(found["probabilities"][name], share, abs_tol=1e-6)
    server_megabytes(place / "bin" / "emhrnn", folder)
    return output(
        place / "bin" / "python", "-c", "import platform; print(platform.python_version())", cwd=folder
    ).strip()


def megabytes(*paths: Path) -> float:
    files = (file for path in paths for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file())
    return round(sum(file.stat().st_size for file in files) / 1e6, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="file of the record; without it, the record is only printed")
    parser.add_argument("--wheel", type=Path, help="measure this wheel instead of building one")
    parser.add_argument("--pythons", nargs="*", default=[], help="others, where the wheel must give the same answer")
    parser.add_argument("--imdb", type=Path, help="a run whose files are measured, too")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="emhrnn-") as name:
        folder = Path(name)
        wheel = asked.wheel
        if wheel is None:
            subprocess.run(
                [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True
            )
            (wheel,) = folder.glob("*.whl")
        venv.create(folder / "empty", with_pip=True)
        binaries = folder / "empty" / "bin"
        subprocess.run([binaries / "python", "-m", "pip", "install", "--quiet", wheel.resolve()], check=True)
        (site,) = (folder / "empty").glob("lib/python*/site-packages")
        parts = [path for path in site.iterdir() if not path.name.startswith(("pip", "setuptools", "_distutils"))]
        explain = (binaries / "emhrnn", *EXPLAIN)
        record = {
            "command": "python -m benchmarks.install",
            "measured": time.strftime("%Y-%m-%d"),
            "python": platform.python_version(),
            "cpu": capability(),
            "wheel": wheel.name,
            "wheel_mb": megabytes(wheel),
            "installed_mb": megabytes(*parts),
            "explain_first_cpu_seconds": round(cpu_seconds(*explain, cwd=folder), 3),
            "explain_next_cpu_seconds": median_seconds(*explain, cwd=folder),
            "python_cpu_seconds": (bare := median_seconds(binaries / "python", "-c", "pass", cwd=folder)),
            "help_cpu_seconds": (help := median_seconds(binaries / "emhrnn", "--help", cwd=folder)),
            "help_over_python": round(help / bare, 1),
            "load": round(os.getloadavg()[0], 1),
            "serve_mb": server_megabytes(binaries / "emhrnn", folder),
            "demo_model_mb": megabytes(SHIPPED),
        }
        record["same_answer_on"] = [same_answer(python, wheel, binaries, folder) for python in asked.pythons]
        if asked.imdb is not None:
            packed = pack(asked.imdb, folder / "imdb.emhrnn")
            record |= {"imdb_model_mb": megabytes(asked.imdb / WEIGHTS), "imdb_packed_mb": megabytes(packed.path)}
    print(json.dumps(record, indent=2))
    if asked.out is not None:
        write_json(asked.out, record)


if __name__ == "__main__":
    main()
