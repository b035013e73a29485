"""TransformerEngine's Python, loaded from its wheel over kernels without a device.

The package of that name on PyPI is Python alone; kernels come in other packages, which
need a GPU. Its own code decides what is saved for backward, ``engine_kernels`` answers
what the kernels return.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import re
import sys
import types
import zipfile
from pathlib import Path
from typing import Any

NAME = "transformer_engine"
VERSION = "2.20.2"
#: Checks that a tensor is on a GPU: ours stand for such tensors but are on the CPU.
_ON_DEVICE = re.compile(r"\b[a-z_][\w.]*\.is_cuda\b")
_ELSEWHERE = re.compile(r"\b[a-z_][\w.]*\.device\.type != \"cuda\"")


class _Engine(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports the package from a folder or a wheel, its device checks answered."""

    def __init__(self, root: Any) -> None:
        self._root = root

    def _file(self, fullname: str) -> Any:
        *above, last = fullname.split(".")
        folder = self._root.joinpath(*above)
        for file in (folder / last / "__init__.py", folder / f"{last}.py"):
            if file.is_file():
                return file
        return None

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if not fullname.startswith(f"{NAME}.") or self._file(fullname) is None:
            return None
        spec = importlib.machinery.ModuleSpec(
            fullname, self, is_package=self.is_package(fullname)
        )
        spec.origin, spec.has_location = str(self._file(fullname)), True
        return spec

    def is_package(self, fullname: str) -> bool:
        return str(self._file(fullname).name) == "__init__.py"

    def get_source(self, fullname: str) -> str:
        source = self._file(fullname).read_text(encoding="utf-8")
        return _ELSEWHERE.sub("False", _ON_DEVICE.sub("True", source))

    def get_code(self, fullname: str) -> types.CodeType:
        return self.source_to_code(self.get_source(fullname), str(self._file(fullname)))


def find(path: Path | None) -> Any:
    """Return where the package lies: in a wheel or folder, or installed; else None."""
    if path is not None:
        return path if path.is_dir() else zipfile.Path(path)
    try:
        found = importlib.metadata.distribution(NAME)
    except importlib.metadata.PackageNotFoundError:
        return None
    return Path(str(found.locate_file("")))


def _version_of(root: Any) -> str:
    folders = (path.name for path in root.iterdir())
    pattern = re.compile(rf"{NAME}-(.+)\.dist-info")
    return next(m[1] for name in folders if (m := pattern.fullmatch(name)))


def load(root: Any) -> None:
    """Import ``transformer_engine.pytorch`` from there, before megatron-core."""
    version = _version_of(root)
    if version != VERSION:
        raise SystemExit(f"TransformerEngine must be {VERSION}, got {version}")
    # The shared library of kernels is not looked for while a wheel is being built.
    os.environ.update(NVTE_PROJECT_BUILDING="1", NVTE_TORCH_COMPILE="0")
    # The package's own first lines load what needs a GPU: an empty one in their place.
    package = types.ModuleType(NAME)
    package.__path__ = []
    package.__version__ = version  # type: ignore[attr-defined]
    package.__spec__ = importlib.machinery.ModuleSpec(NAME, None, is_package=True)
    sys.modules[NAME] = package
    sys.meta_path.insert(0, _Engine(root))
    _answer_version(version)

    from . import engine_formats, engine_kernels

    engine_kernels.install()
    common = importlib.import_module(f"{NAME}.common")
    common.load_framework_extension = lambda name: None  # type: ignore[attr-defined]
    package.pytorch = importlib.import_module(f"{NAME}.pytorch")  # type: ignore[attr-defined]
    engine_formats.install()
    extensions = importlib.import_module(f"{NAME}.pytorch.cpp_extensions")
    extensions.__getattr__ = engine_kernels.missing  # type: ignore[method-assign]
    utils = importlib.import_module(
        f"{NAME}.pytorch.attention.dot_product_attention.utils"
    )
    # The choice asks cuDNN; taken is its fused attention, as for bf16 on an H100.
    utils.get_attention_backend = lambda params: (  # type: ignore[attr-defined]
        *(False, None, True, 1, False),
        [False, True, False],
    )


def _answer_version(version: str) -> None:
    """Answer for distributions of kernels, which a wheel of Python does not bring."""
    installed = importlib.metadata.version

    def answer(name: str) -> str:
        ours = name.replace("-", "_").startswith(NAME)
        return version if ours else installed(name)

    importlib.metadata.version = answer
