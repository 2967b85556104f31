"""The derivative that a `backward` owes and does not hand back, taken by autograd."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from autograd_explain.arguments import positional_parameters
from autograd_explain.model import Edits, Place
from autograd_explain.program import Program, Source, last_name, own_nodes
from autograd_explain.rewrite import torch_at
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches


@dataclass(frozen=True)
class _Kept:
    """What `forward` saves and `backward` takes out again, each None where nothing is; inputs by
    what backward calls them."""

    saving: ast.Call | None
    taking: ast.Assign | None
    names: Mapping[str, str]


def derivative_by_autograd(
    program: Program,
    place: Place,
    name: str,
    gradient: str,
    tensors: Collection[str] | None = None,
    written: Callable[[str], str] = str,
) -> Edits | None:
    """`None` -> `torch.autograd.functional.vjp(lambda s: torch.tanh(x * s), s, grad)[1]`.

    What the input `name` needs beside it is saved as well, where it is one of the `tensors`, if
    these are known.  `written` is what stands at the place with the derivative in it.  None where
    `forward` is more than assignments of names and one result that has a gradient, or where what it
    reads is not known to `backward`.
    """
    source, node = program.source_at(place), program.expression_at(place)
    torch = torch_at(program, place)
    backward = None if source is None else source.function_at(place)
    if source is None or torch is None or not gradient or not isinstance(backward, ast.FunctionDef):
        return None
    owner = source.parents.get(backward)
    if not isinstance(owner, ast.ClassDef):
        return None
    methods = {n.name: n for n in owner.body if isinstance(n, ast.FunctionDef)}
    forward = methods.get("forward")
    if node is None or forward is None or "setup_context" in methods:
        return None
    value, kept = _result(forward), _kept(forward, backward)
    if value is None or kept is None:
        return None
    inputs = positional_parameters(forward)
    read = [n for n in inputs[1:] if n in _names(value)]
    if inputs[0] in _names(value) or name not in read or _assigned(forward) & set(read):
        return None
    if not kept.names.get(name, name).isidentifier():
        return None  # kept on the context alone
    more = [n for n in read if n not in kept.names]
    if set(more) & {n.id for n in ast.walk(backward) if isinstance(n, ast.Name)}:
        return None  # backward has another value under this name
    if tensors is not None and not set(more).issubset(tensors):
        return None
    here = {**kept.names, **{n: n for n in more}}
    read_here = {n: ast.parse(here[n], mode="eval").body for n in read if n != name}
    own = ast.unparse(_with_names(value, {**read_here, name: ast.Name(here[name])}))
    taken = f"{torch}.autograd.functional.vjp(lambda {here[name]}: {own}, {here[name]}, {gradient})"
    span = source.span(node)
    patches = [] if span is None else [Patch(source, span, written(f"{taken}[1]"))]
    return apply_patches([*patches, *_saved_as_well(source, kept, more, forward, backward)])


def _result(forward: ast.FunctionDef) -> ast.expr | None:
    """What a `forward` returns that has a gradient, the first if there is more, with the names it
    gave values on the way put in."""
    known: dict[str, ast.expr] = {}
    for statement in forward.body:
        if isinstance(statement, ast.Return) and statement.value is not None:
            many = isinstance(statement.value, ast.Tuple)
            first = _first_alone(forward, statement.value) if many else statement.value
            return None if first is None else _with_names(first, known)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if isinstance(statement, ast.Assign) and isinstance(target, ast.Name):
            known[target.id] = _with_names(statement.value, known)
        elif not _is_on_context(statement, forward):
            return None
    return None


def _first_alone(forward: ast.FunctionDef, value: ast.expr) -> ast.expr | None:
    """The first of several results, where the others are said to have no gradient."""
    first, *others = value.elts if isinstance(value, ast.Tuple) and value.elts else [None]
    marked = {ast.unparse(a) for c in _calls(forward, "mark_non_differentiable") for a in c.args}
    return first if marked.issuperset(ast.unparse(o) for o in others if o is not None) else None


def _calls(function: ast.FunctionDef, name: str) -> list[ast.Call]:
    calls = (n for n in own_nodes(function) if isinstance(n, ast.Call))
    return [c for c in calls if last_name(c.func) == name]


def _is_on_context(statement: ast.stmt, forward: ast.FunctionDef) -> bool:
    """`ctx.save_for_backward(…)`, `ctx.factor = …`, a docstring."""
    node: ast.expr | None
    if isinstance(statement, ast.Expr):
        node = statement.value.func if isinstance(statement.value, ast.Call) else statement.value
    else:
        node = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.value.id == positional_parameters(forward)[0]
    return isinstance(node, ast.Constant)


def _kept(forward: ast.FunctionDef, backward: ast.FunctionDef) -> _Kept | None:
    saving = _calls(forward, "save_for_backward")
    assigned = [n for n in own_nodes(backward) if isinstance(n, ast.Assign)]
    taking = [a for a in assigned if last_name(a.value) == "saved_tensors"]
    on_context = _on_context(forward, backward)
    read = any(last_name(n) == "saved_tensors" for n in own_nodes(backward))
    if not saving and not read:
        return _Kept(None, None, on_context)
    if len(saving) != 1 or len(taking) != 1 or not isinstance(taking[0].targets[0], ast.Tuple):
        return None
    pairs = zip(saving[0].args, taking[0].targets[0].elts, strict=False)
    names = {a.id: b.id for a, b in pairs if isinstance(a, ast.Name) and isinstance(b, ast.Name)}
    return _Kept(saving[0], taking[0], {**on_context, **names})


def _on_context(forward: ast.FunctionDef, backward: ast.FunctionDef) -> dict[str, str]:
    """What backward calls the inputs that `ctx.factor = factor` keeps."""
    context, here = positional_parameters(forward)[0], positional_parameters(backward)[0]
    found = {}
    for node in (n for n in own_nodes(forward) if isinstance(n, ast.Assign)):
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Attribute) and isinstance(value, ast.Name):
            if ast.unparse(target.value) == context:
                found[value.id] = f"{here}.{target.attr}"
    return found


def _saved_as_well(
    source: Source,
    kept: _Kept,
    names: list[str],
    forward: ast.FunctionDef,
    backward: ast.FunctionDef,
) -> Iterator[Patch]:
    """`ctx.save_for_backward(y)` -> `ctx.save_for_backward(y, x)`, and taken out likewise; new
    statements where nothing is saved yet."""
    if not names:
        return
    if kept.saving is None or kept.taking is None:
        listed = ", ".join(names)
        saved = f"{positional_parameters(forward)[0]}.save_for_backward({listed})"
        taken = f"{positional_parameters(backward)[0]}.saved_tensors"
        left = f"({listed},)" if len(names) == 1 else listed
        yield from _before(source, forward.body[-1], saved)
        yield from _before(source, _first(backward), f"{left} = {taken}")
        return
    for node in (kept.saving, kept.taking.targets[0]):
        span, old = source.span(node), source.segment(node)
        if span is not None and old is not None:
            end = ")" if old.endswith(")") else ""
            inner = old.removesuffix(")").rstrip().removesuffix(",")
            yield Patch(source, span, ", ".join([inner, *names]) + end)


def _first(function: ast.FunctionDef) -> ast.stmt:
    """The first statement, a docstring apart."""
    body = function.body
    return body[1] if len(body) > 1 and ast.get_docstring(function) is not None else body[0]


def _before(source: Source, statement: ast.stmt, line: str) -> Iterator[Patch]:
    span = source.span(statement)
    if span is not None:
        start = replace(span, end_line=span.line, end_column=span.column)
        yield Patch(source, start, f"{line}\n{' ' * statement.col_offset}")


def _assigned(function: ast.FunctionDef) -> set[str]:
    names = (n for n in own_nodes(function) if isinstance(n, ast.Name))
    return {n.id for n in names if isinstance(n.ctx, ast.Store)}


def _names(value: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}


def _with_names(value: ast.expr, known: Mapping[str, ast.expr]) -> ast.expr:
    """An expression with others in the places of names."""

    class Put(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return copy.deepcopy(known.get(node.id, node))

    put: ast.expr = Put().visit(copy.deepcopy(value))
    return put
