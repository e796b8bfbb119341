"""The tests of native code, compiled with address and undefined-behaviour sanitizers.

    python -m tests.faults.sanitize [--record]

An overflow, a use after free or undefined behaviour ends the process. Leaks are not looked for: Python keeps memory.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.faults.report import record

ROOT = Path(__file__).parents[2]
CXX = "g++ -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
# With -O3, the sanitized kernels take longer to compile than the package waits for a compiler.
PYTEST = """
import sys, pytest, emhrnn.compiler as compiler
compiler.FLAGS, compiler.TIMEOUT = ("-O1", *compiler.FLAGS[1:]), 3600
sys.exit(pytest.main(sys.argv[1:]))
"""
TESTS = [
    "text/test_stretches.py", "text/test_encoder.py", "layers/test_native.py", "layers/test_semi_markov.py",
    "layers/test_evidence.py", "layers/test_phrases.py",
]  # fmt: skip


def sanitized(name: str, cache: str) -> subprocess.CompletedProcess[str]:
    """Run a file of tests in a process with the sanitizers' libraries; kernels are compiled into `cache`, once."""
    libraries = [
        subprocess.run(
            ["g++", f"-print-file-name={name}.so"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan", "libubsan", "libstdc++")
    ]
    environment = {
        **os.environ, "CXX": CXX, "EMHRNN_CACHE": cache, "LD_PRELOAD": ":".join(libraries), "OMP_NUM_THREADS": "1",
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1", "UBSAN_OPTIONS": "print_stacktrace=1",
    }  # fmt: skip
    # Shapes are not checked: emhrnn is loaded already. Nothing is captured: a report would be lost with the process.
    options = ["-q", "-s", "-p", "no:cacheprovider", "-o", "addopts="]
    command = [sys.executable, "-c", PYTEST, *options, f"tests/{name}"]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the outcome to results/reliability.md and .json")
    options = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as cache:
        for name in TESTS:
            ended = sanitized(name, cache)
            count = sum(line.count(".") for line in re.findall(r"^([.sxF]+)", ended.stdout, re.M))
            reports = len(re.findall(r"ERROR: AddressSanitizer|runtime error:", ended.stdout + ended.stderr))
            found.append({"tests": f"tests/{name}", "passed": count, "exit code": ended.returncode, "reports": reports})
            print(found[-1], flush=True)
            if ended.returncode:
                print((ended.stdout + ended.stderr)[-3000:])
    if options.record:
        remarks = [f"Compiled with `{CXX} -O1`."]
        record("sanitizers", {"command": "python -m tests.faults.sanitize --record", "remarks": remarks, "rows": found})
    sys.exit(any(row["exit code"] or row["reports"] or not row["passed"] for row in found))


if __name__ == "__main__":
    main()
