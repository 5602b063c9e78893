"""Puts a mutant's fault into the reference while it is imported, and tells when the faulty line first ran."""

import ast
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from conformance.mutants.patch import Mutant, MutantError, Patch

_TELL = "__trackgauge_mutant_ran__"


def install(mutant: Mutant, ran: Path) -> None:
    """From now on, importing a module of the mutant's gives the faulty one. ``ran`` is created when it first runs.

    Raises MutantError at once when a target is gone or its module does not exist.
    """
    finders = []
    for module in dict.fromkeys(patch.module for patch in mutant.patches):
        patches = [patch for patch in mutant.patches if patch.module == module]
        if module in sys.modules:
            raise MutantError(f"mutant {mutant.name}: {module} is already imported; install the mutant before")
        finders.append(_Finder(module, patches, ran))
    # All are in place before the first look, since looking imports a package, which may import its modules itself.
    sys.meta_path[:0] = finders
    for finder in finders:
        spec = finder.find_spec(finder.module, None)
        if spec is None or spec.origin is None:
            raise MutantError(f"mutant {mutant.name}: there is no module {finder.module}")
        faulty(finder.patches, Path(spec.origin).read_text(encoding="utf-8"), spec.origin)


def faulty(patches: Sequence[Patch], source: str, path: str) -> CodeType:
    """The compiled faulty module, with a call before each changed statement that tells that it ran."""
    source, starts = _applied(patches, source)
    try:
        tree = ast.parse(source, path)
    except SyntaxError as error:
        raise MutantError(f"a mutant's change of {patches[0].module} does not parse: {error}") from None
    for start in starts:
        body, place = _statement_at(tree.body, source[:start].count("\n") + 1)
        tell = ast.Expr(ast.Call(ast.Name(_TELL, ast.Load()), [], []))
        body.insert(place, ast.copy_location(tell, body[place]))
    ast.fix_missing_locations(tree)
    code: CodeType = compile(tree, path, "exec")
    return code


def _applied(patches: Sequence[Patch], source: str) -> tuple[str, list[int]]:
    """The changed source, and where in it each change begins, blank lines aside."""
    starts: list[int] = []
    for patch in patches:
        at = source.find(patch.old)
        source = patch.apply(source)
        grown = len(patch.new) - len(patch.old)
        starts = [start + grown if start > at else start for start in starts]
        starts.append(at + len(patch.new) - len(patch.new.lstrip("\n")))
    return source, starts


def _statement_at(body: list[ast.stmt], line: int) -> tuple[list[ast.stmt], int]:
    """The innermost statement that holds a line, as the list it stands in and its place there."""
    place = max((n for n, statement in enumerate(body) if statement.lineno <= line), default=0)
    for inner in _blocks(body[place]):
        if inner and inner[0].lineno <= line <= (inner[-1].end_lineno or line):
            return _statement_at(inner, line)
    return body, place


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    blocks += [handler.body for handler in getattr(statement, "handlers", [])]
    blocks += [case.body for case in getattr(statement, "cases", [])]
    return [block for block in blocks if isinstance(block, list)]


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, module: str, patches: Sequence[Patch], ran: Path) -> None:
        self.module = module
        self.patches = patches
        self._ran = ran

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self.module:
            return None
        package, _, _ = name.rpartition(".")
        if path is None:
            __import__(package)
            path = list(sys.modules[package].__path__)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(name, spec.origin, self.patches, self._ran)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, patches: Sequence[Patch], ran: Path) -> None:
        super().__init__(name, path)
        self._patches = patches
        self._ran = ran

    def get_code(self, fullname: str) -> CodeType:
        return faulty(self._patches, self.get_data(self.path).decode(), self.path)

    def exec_module(self, module: ModuleType) -> None:
        setattr(module, _TELL, _teller(self._ran))
        super().exec_module(module)


def _teller(ran: Path) -> Callable[[], None]:
    told = False

    def tell() -> None:
        nonlocal told
        if not told:
            told = True
            ran.touch()

    return tell
