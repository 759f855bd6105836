"""The programs that recipes speak of, from the sources in `tests/examples`."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

EXAMPLES = Path(__file__).with_name("examples")


def gcc(folder: Path, output: str, source: str, *options: str) -> None:
    subprocess.run(["gcc", "-O2", "-g", *options, "-o", folder / output, EXAMPLES / source], check=True)


def wheel(folder: Path, name: str, *options: str) -> None:
    """A wheel with one library."""
    gcc(folder, "text.so", "text.c", "-shared", "-fPIC", "-fno-semantic-interposition", *options)
    with zipfile.ZipFile(folder / name, "w") as packed:
        packed.write(folder / "text.so", "example/text.so")
        packed.writestr("example-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: example\nVersion: 1.0\n")


def of_recipes(folder: Path) -> None:
    for build, options in {"old": (), "new": ("-DSLOW",)}.items():
        (folder / build).mkdir()
        gcc(folder, f"{build}/primes", "primes.c", *options)
    gcc(folder, "waits", "waits.c", "-pthread")
    gcc(folder, "startup.o", "startup.s", "-c")
    (folder / "build").mkdir()
    gcc(folder, "build/primes", "primes.c")
    gcc(folder, "build/libtext.so", "text.c", "-shared", "-fPIC")
    wheel(folder, "example-1.0-cp312-cp312-linux_x86_64.whl", "-fomit-frame-pointer")
    wheel(folder, "kept-1.0-cp312-cp312-linux_x86_64.whl", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer")
    shutil.copy(EXAMPLES / "job.py", folder)
