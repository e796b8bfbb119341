"""What an installation takes: builds a wheel, installs it into an empty environment, and measures there.

python -m benchmarks.install --out results/install.json     # needs a package index; --wheel FILE: one that is there

MB are millions of bytes on disk, of everything in site-packages but pip. Seconds are CPU seconds of the whole command,
user and system; the first time is right after installing. The memory of the server is VmRSS after 40 texts.
"""

import argparse
import json
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from pathlib import Path

from emhrnn.compiler import capability
from emhrnn.files import write_json
from emhrnn.training.run import SHIPPED

ROOT = Path(__file__).parents[1]
TEXT = "The soup was not bad at all."
ASKED = 40  # texts, before the memory of the server is read


def cpu_seconds(*command: str | Path, cwd: Path) -> float:
    """Of a command that must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(*command, cwd=cwd)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, 2)


def run(*command: str | Path, cwd: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"EMHRNN_CACHE": str(cwd / "cache"), "CXX": "no-compiler-here"}
    subprocess.run(list(map(str, command)), cwd=cwd, env=environment, check=True, stdout=subprocess.DEVNULL)


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
                urllib.request.urlopen(request, timeout=60).read()  # noqa: S310
            status = Path(f"/proc/{server.pid}/status").read_text()
        finally:
            server.terminate()
    return round(int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024 / 1e6, 1)


def megabytes(*paths: Path) -> float:
    files = (file for path in paths for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file())
    return round(sum(file.stat().st_size for file in files) / 1e6, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="file of the record; without it, the record is only printed")
    parser.add_argument("--wheel", type=Path, help="measure this wheel instead of building one")
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
        explain = (binaries / "emhrnn", "explain", "demo", TEXT)
        record = {
            "command": "python -m benchmarks.install",
            "measured": time.strftime("%Y-%m-%d"),
            "python": platform.python_version(),
            "cpu": capability(),
            "wheel": wheel.name,
            "wheel_mb": megabytes(wheel),
            "installed_mb": megabytes(*parts),
            "explain_first_cpu_seconds": cpu_seconds(*explain, cwd=folder),
            "explain_next_cpu_seconds": min(cpu_seconds(*explain, cwd=folder) for _ in range(3)),
            "serve_mb": server_megabytes(binaries / "emhrnn", folder),
            "demo_model_mb": megabytes(SHIPPED),
        }
    print(json.dumps(record, indent=2))
    if asked.out is not None:
        write_json(asked.out, record)


if __name__ == "__main__":
    main()
