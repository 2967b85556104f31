"""Stand-ins for the CUDA libraries of a torch wheel, so that it loads where there is no GPU.

PyPI's wheels for Linux are CUDA builds that need gigabytes of NVIDIA's libraries to be imported,
none of which does anything on a machine without a GPU.  A stand-in has the symbols that torch's
libraries ask for, under their versions; every function of it answers cudaErrorNoDevice.

usage: stub_libraries.py SITE_PACKAGES
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

_NO_DEVICE = 100  #: cudaErrorNoDevice, driver_types.h
_NEEDED = re.compile(r"\(NEEDED\).*\[(?P<library>.+)\]")
_SYMBOL = re.compile(
    r"^ +\d+: .{16} +\d+ \w+ +(?P<bind>GLOBAL|WEAK) +\w+ +(?P<section>\w+) "
    r"(?P<name>[^@ ]+)(?:@+(?P<version>[^ ]+))?"
)
_OF_FILE = re.compile(r"File: (?P<library>\S+)")
_VERSION = re.compile(r"Name: (?P<version>\S+)")


def add_stubs(torch: Path) -> list[str]:
    """Put a stand-in into the package's `lib` for each library that it lacks; their names."""
    have = [*(torch / "lib").glob("*.so*"), *torch.glob("_C.*.so")]
    missing = {name for library in have for name in _needed(library) if not _is_there(name, torch)}
    symbols: dict[str, dict[str, set[str]]] = {name: defaultdict(set) for name in missing}
    loose: set[str] = set()
    defined: set[str] = set()
    for library in have:
        owners = _owners(library)
        for match in filter(None, map(_SYMBOL.match, _read(library, "--dyn-syms"))):
            if match["section"] != "UND":
                defined.add(match["name"])
            elif match["version"] is None and match["bind"] == "GLOBAL":
                loose.add(match["name"])
            elif owners.get(match["version"]) in missing:
                symbols[owners[match["version"]]][match["version"]].add(match["name"])
    if missing:
        symbols[min(missing)][""] |= loose - defined
    for name, versions in symbols.items():
        _build(torch / "lib" / name, versions)
    return sorted(missing)


def _needed(library: Path) -> list[str]:
    found = (_NEEDED.search(line) for line in _read(library, "--dynamic"))
    return [match["library"] for match in found if match]


def _is_there(name: str, torch: Path) -> bool:
    """Whether torch brings the library, or the machine has it."""
    if (torch / "lib" / name).exists():
        return True
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True)
    return name.startswith("ld-linux") or f"\t{name} " in known.stdout


def _owners(library: Path) -> dict[str, str]:
    """Which library each symbol version is asked of."""
    owners, owner = {}, ""
    for line in _read(library, "--version-info"):
        if found := _OF_FILE.search(line):
            owner = found["library"]
        if owner and (named := _VERSION.search(line)):
            owners[named["version"]] = owner
    return owners


def _build(library: Path, versions: dict[str, set[str]]) -> None:
    names = sorted(set().union(*versions.values()))
    with tempfile.TemporaryDirectory() as folder:
        code, script = Path(folder, "stub.c"), Path(folder, "stub.map")
        code.write_text("".join(f"int {name}(void) {{ return {_NO_DEVICE}; }}\n" for name in names))
        script.write_text(
            "".join(
                f"{version} {{ global: {' '.join(f'{name};' for name in sorted(given))} }};\n"
                for version, given in versions.items()
                if version
            )
        )
        versioned = [f"-Wl,--version-script={script}"] if script.read_text() else []
        command = ["gcc", "-shared", "-fPIC", "-fno-builtin", "-w", f"-Wl,-soname,{library.name}"]
        subprocess.run([*command, *versioned, str(code), "-o", str(library)], check=True)


def _read(library: Path, what: str) -> list[str]:
    told = subprocess.run(
        ["readelf", "--wide", what, str(library)], capture_output=True, text=True, check=True
    )
    return told.stdout.splitlines()


if __name__ == "__main__":
    print("\n".join(add_stubs(Path(sys.argv[1]) / "torch")))
