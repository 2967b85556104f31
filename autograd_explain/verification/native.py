"""Functions written in C or Rust that open a path by themselves, made to work on an overlay.

Others of their kind find what is really there when they read, and are refused when they write.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from .redirect import Redirection, rebind

#: Of a module, its functions' names with what stands in their place.
_Replacing = Callable[[ModuleType, Redirection], Mapping[str, Any]]


def install(files: Redirection) -> None:
    """Replace those of modules that are there, and of others when they are loaded."""
    originals, replaced = [], {}
    for name, replacing in _MODULES.items():
        module = sys.modules.get(name)
        if module is not None:
            for key, new in replacing(module, files).items():
                originals.append(getattr(module, key))
                replaced[id(originals[-1])] = new
    if originals:
        rebind(originals, replaced)
    sys.meta_path.insert(0, _WhenLoaded(files))
    _map_in_torch(files)


class _WhenLoaded(MetaPathFinder):
    def __init__(self, files: Redirection) -> None:
        self._files = files

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        replacing = _MODULES.get(fullname)
        spec = None if replacing is None else PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None or replacing is None:
            return None
        load, replace = spec.loader.exec_module, replacing

        def exec_module(module: ModuleType) -> None:
            load(module)
            vars(module).update(replace(module, self._files))

        setattr(spec.loader, "exec_module", exec_module)  # noqa: B010  # a method of its own
        return spec


def _safetensors(module: ModuleType, files: Redirection) -> Mapping[str, Any]:
    serialize: Any = module.serialize
    opened: Any = module.safe_open

    def serialize_file(
        tensor_dict: Any, filename: Any, metadata: Mapping[str, str] | None = None
    ) -> None:
        data = serialize(tensor_dict, metadata)
        with open(filename, "wb") as file:
            file.write(data)

    def safe_open(filename: Any, *args: Any, **kwargs: Any) -> Any:
        return opened(files.readable(filename), *args, **kwargs)

    return {"serialize_file": serialize_file, "safe_open": safe_open}


def _map_in_torch(files: Redirection) -> None:
    """torch.load(…, mmap=True)."""
    import torch

    original: Any = torch.UntypedStorage.from_file

    def from_file(filename: Any, *args: Any, **kwargs: Any) -> Any:
        return original(files.readable(filename), *args, **kwargs)

    setattr(torch.UntypedStorage, "from_file", staticmethod(from_file))  # noqa: B010


_MODULES: Mapping[str, _Replacing] = {"safetensors._safetensors_rust": _safetensors}
