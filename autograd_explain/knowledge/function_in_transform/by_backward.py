"""Derivatives that a transform would give, taken by backward, which runs every Function as it is.

`grad(f)(x)` -> `torch.autograd.functional.jacobian(f, x, create_graph=True)`, which leads back to
parameters that `f` reads, as the transform's result does; and `vmap(g)(xs)`, where `g` gives one
tensor, -> `torch.stack([g(x) for x in xs])`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import libcst as cst

from autograd_explain import arguments
from autograd_explain.model import Edits
from autograd_explain.program import Program, Source
from autograd_explain.program_index import Definition, index_of
from autograd_explain.rewrite.analysis.effects import parameter_names, used_names
from autograd_explain.rewrite.engine.cst_tools import (
    calls_in,
    dotted,
    filled,
    given_by,
    parse,
    repeatable,
)
from autograd_explain.rewrite.engine.draft import Drafts
from autograd_explain.rewrite.engine.imports import Imports
from autograd_explain.rewrite.engine.tree import Tree, tree_of

from .diagnose import Entered

#: What gives the same by backward (torch/autograd/functional.py).
_BY_BACKWARD = {
    "grad": "jacobian", "jacrev": "jacobian", "jacfwd": "jacobian", "hessian": "hessian"
}  # fmt: skip
_MAPS = ("torch.func.vmap", "torch.vmap")


def by_backward(program: Program, lines: Iterable[Entered]) -> Edits | None:
    """What these lines call, without a transform; None where that cannot be told of one of them."""
    drafts = Drafts()
    for entered in lines:
        source = program.source_at(entered.place)
        text = None if source is None else _Text.of(program, source, entered.sliced, drafts)
        if text is None or not text.changed(calls_in(text.tree.statement(entered.place))):
            return None
    return drafts.edits()


@dataclass(frozen=True)
class _Transform:
    """`grad(f, argnums=1)`: its name in `torch.func`, `f` and the position that it is taken at."""

    name: str
    function: cst.BaseExpression
    position: int = 0


@dataclass(frozen=True)
class _Text:
    """A cell or file with lines to change; `sliced` says which arguments `vmap` takes apart."""

    program: Program
    tree: Tree
    imports: Imports
    sliced: Sequence[bool]
    drafts: Drafts

    @classmethod
    def of(cls, program: Program, source: Source, sliced: Sequence[bool], drafts: Drafts) -> _Text:
        imports = Imports.of(program, source)
        return cls(program, tree_of(program, source), imports, sliced, drafts)

    def changed(self, calls: Sequence[cst.Call]) -> bool:
        """Whether one of the calls calls what a transform made, and all that do are changed."""
        made = [c for c in calls if self._transform(c.func) is not None]
        named = [c for c in calls if c not in made and self._named(c.func, len(c.args))]
        return bool(made or named) and all(map(self._call_changed, made))

    def _transform(self, made: cst.CSTNode) -> _Transform | None:
        """None of one with other options, too."""
        if not isinstance(made, cst.Call) or any(a.star for a in made.args):
            return None
        full = self.imports.full(dotted(made.func))
        package, _, name = full.rpartition(".")
        second = "in_dims" if full in _MAPS else "argnums"
        given = arguments.bind(("func", second, "", ""), given_by(made))
        if "func" not in given or not given.keys() <= {"func", second}:
            return None
        if full in _MAPS:
            return _Transform("vmap", given["func"])
        at = given.get("argnums", cst.Integer("0"))
        if package != "torch.func" or name not in _BY_BACKWARD or not isinstance(at, cst.Integer):
            return None
        return _Transform(name, given["func"], at.evaluated_value)

    def _call_changed(self, call: cst.Call) -> bool:
        """`grad(f)(x)`, when what stands inside was changed."""
        if any(a.keyword is not None or a.star for a in call.args):
            return False

        def how(now: cst.Call) -> cst.BaseExpression | None:
            given = [self.tree.code(a.value) for a in now.args]
            code = self._called(now.func, given)
            return None if code is None else parse(code)

        if how(call) is None:
            return False
        self.drafts[self.tree].change(call, lambda now: how(now) or now)
        return True

    def _named(self, function: cst.BaseExpression, count: int) -> bool:
        """Whether a function is the one that `name = grad(f)` makes, which is changed where it
        stands to give the same when it is called with so many arguments."""
        name = dotted(function)
        scope = self.tree.scope_of(function) if function in self.tree.parents else None
        if isinstance(scope, (cst.FunctionDef, cst.Lambda)) and name in parameter_names(scope):
            return False
        made = {
            (source.text, node.value.lineno, node.value.col_offset): (source, node.value)
            for source, node in index_of(self.program).assignments(name or "")
        }
        if len(made) != 1:
            return False
        source, value = made.popitem()[1]
        there = _Text.of(self.program, source, self.sliced, self.drafts)
        node = there.tree.node(source.place(value.lineno, None, value))
        return node is not None and there._as_lambda(node, count)

    def _as_lambda(self, made: cst.BaseExpression, count: int) -> bool:
        transform = self._transform(made)
        if transform is None:
            return False
        names = self._names(made, count, ())
        if transform.name == "vmap":  # of samples it is given many
            names = ["batch", *(f"batch_{n}" for n in range(2, count + 1))]

        def how(now: cst.BaseExpression) -> cst.BaseExpression | None:
            code = self._called(now, names)
            return None if code is None else parse(f"lambda {', '.join(names)}: {code}")

        if how(made) is None:
            return False
        self.drafts[self.tree].change(made, lambda now: how(now) or now)
        return True

    def _called(self, made: cst.BaseExpression, given: Sequence[str]) -> str | None:
        """What a transform's result gives for these arguments."""
        found = self._transform(made)
        if found is None:
            return None
        if found.name == "vmap":
            return self._stacked(found.function, given)
        function = self.imports.local(f"torch.autograd.functional.{_BY_BACKWARD[found.name]}")
        if function is None or found.position >= len(given) or self._gives_more(found.function):
            return None
        code, x = self.tree.code(found.function), given[found.position]
        if len(given) > 1:
            others = [g for i, g in enumerate(given) if i != found.position]
            taken = _read(code, *others)
            name = x if x.isidentifier() and x not in taken else _free("x", taken)
            passed = [name if i == found.position else g for i, g in enumerate(given)]
            code = f"lambda {name}: " + filled("{f}{arguments}", f=code, arguments=_put(passed))
        return f"{function}({code}, {x}, create_graph=True)"

    def _stacked(self, function: cst.BaseExpression, given: Sequence[str]) -> str | None:
        """`torch.stack([g(x) for x in xs])`."""
        torch = self.imports.local("torch")
        kept = [g for g, sliced in zip(given, self.sliced, strict=False) if not sliced]
        if torch is None or len(given) != len(self.sliced) or not any(self.sliced):
            return None
        if not all((node := parse(g)) is not None and repeatable(node) for g in kept):
            return None
        names = self._names(function, len(given), given)
        passed = [n if s else g for n, g, s in zip(names, given, self.sliced, strict=True)]
        each = self._one(function, passed)
        over = [g for g, sliced in zip(given, self.sliced, strict=True) if sliced]
        target = ", ".join(n for n, sliced in zip(names, self.sliced, strict=True) if sliced)
        iterable = f"zip({', '.join(over)})" if len(over) > 1 else over[0]
        return each and f"{torch}.stack([{each} for {target} in {iterable}])"

    def _one(self, function: cst.BaseExpression, given: Sequence[str]) -> str | None:
        """What `vmap` runs of one sample, where that is one tensor."""
        transform = self._transform(function)
        if transform is not None:
            return None if transform.name == "vmap" else self._called(function, given)
        if not self._named(function, len(given)) and not self._gives_tensor(function):
            return None
        return filled("{f}{arguments}", f=self.tree.code(function), arguments=_put(given))

    def _gives_tensor(self, function: cst.BaseExpression) -> bool:
        """Whether all that a function of the program's returns is computed of a derivative."""
        if isinstance(function, cst.Lambda):
            return self._is_tensor(function.body)
        found = self._function(function)
        if found is None:
            return False
        there = _Text.of(self.program, found.source, self.sliced, self.drafts)
        nodes = [there.tree.node(found.at(value)) for value in found.returned]
        return bool(nodes) and all(n is not None and there._is_tensor(n) for n in nodes)

    def _gives_more(self, function: cst.BaseExpression) -> bool:
        """Whether a function returns a tuple, a list or a dictionary of tensors."""
        if isinstance(function, cst.Lambda):
            return isinstance(function.body, (cst.Tuple, cst.List, cst.Dict))
        found = self._function(function)
        shown = (ast.Tuple, ast.List, ast.Dict)
        return found is not None and any(isinstance(v, shown) for v in found.returned)

    def _function(self, function: cst.BaseExpression) -> Definition | None:
        """The function, or method, of the program's that an expression names."""
        return index_of(self.program).function((dotted(function) or "").rpartition(".")[2])

    def _is_tensor(self, node: cst.BaseExpression) -> bool:
        if isinstance(node, cst.UnaryOperation):
            return self._is_tensor(node.expression)
        if isinstance(node, cst.BinaryOperation):
            return self._is_tensor(node.left) or self._is_tensor(node.right)
        if not isinstance(node, cst.Call):
            return False
        full = self.imports.full(dotted(node.func))  # of what was changed by then
        known = full.startswith("torch.autograd.functional.") or full == "torch.stack"
        return known or bool(self._transform(node.func)) or self._named(node.func, len(node.args))

    def _names(self, function: cst.BaseExpression, count: int, given: Sequence[str]) -> list[str]:
        """Names for so many arguments: those of the parameters, where nothing here is called so."""
        while (transform := self._transform(function)) is not None:
            function = transform.function
        found = self._function(function)
        wishes = [] if found is None else arguments.positional_parameters(found.node)
        wishes = [name for name in wishes if name != "self"]
        if isinstance(function, cst.Lambda):
            wishes = [p.name.value for p in function.params.params]
        names: list[str] = []
        taken = _read(self.tree.code(function), *given)
        for wish in wishes if len(wishes) == count else ["x"] * count:
            names.append(_free(wish, {*taken, *names}))
        return names


def _put(codes: Iterable[str]) -> str:
    return f"({', '.join(codes)})"


def _read(*codes: str) -> set[str]:
    """The names that expressions read; of a lambda those that are not its parameters."""
    found: set[str] = set()
    for node in filter(None, map(parse, codes)):
        own = parameter_names(node) if isinstance(node, cst.Lambda) else set()
        found |= used_names(node) - own
    return found


def _free(wish: str, taken: Collection[str]) -> str:
    names = (wish, *(f"{wish}_{n}" for n in range(2, 100)))
    return next(name for name in names if name not in taken)
