#!/usr/bin/env python3
"""Prints the licences of all packages that are compiled into brigade for a target, each text once.

licences.py TARGET
"""

import json
import subprocess
import sys
from pathlib import Path

NAMES = ("licen", "copying", "notice", "unlicense")

GLIBC = """\
Statically linked programs for Linux contain parts of the GNU C Library, which is licensed under the GNU Lesser
General Public License, version 2.1 or later. The sources of the library belong to the system on which the program was
built. To link brigade with another version of the library, build brigade from its sources with packaging/build.
"""


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def compiled(target: str) -> list[dict]:
    """The packages that are part of the program: its dependencies, except those that only builds and tests need."""
    # Use `cargo tree`, because `cargo metadata` also lists packages that no enabled feature uses.
    tree = run(
        *("cargo", "tree", "--locked", "--package", "brigade", "--target", target),
        *("--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"),
    )
    names = {tuple(line.split()[:2]) for line in tree.splitlines()}
    metadata = json.loads(
        run("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target)
    )
    packages = [
        package
        for package in metadata["packages"]
        if package["source"] and (package["name"], f"v{package['version']}") in names
    ]
    return sorted(packages, key=lambda package: (package["name"], package["version"]))


def main(target: str) -> None:
    packages = compiled(target)
    print("The packages that brigade contains, and their licences.\n")
    texts: dict[str, list[str]] = {}
    for package in packages:
        name = f"{package['name']} {package['version']}"
        print(f"{name}: {package['license'] or 'see its text below'}")
        folder = Path(package["manifest_path"]).parent
        for file in sorted(folder.iterdir()):
            if file.is_file() and file.name.lower().startswith(NAMES):
                text = file.read_text(errors="replace").replace("\r\n", "\n").strip()
                texts.setdefault(text, []).append(name)
    if "linux" in target:
        print(f"\n{GLIBC}", end="")
    for text, names in sorted(texts.items(), key=lambda one: one[1]):
        print(f"\n{'=' * 80}\n{', '.join(names)}\n{'-' * 80}\n{text}")


if len(sys.argv) != 2:
    sys.exit(__doc__)
main(sys.argv[1])
