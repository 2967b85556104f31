"""`torch.autograd.grad(…)` told that an input may be unused, and what to give for it then."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from autograd_explain.inspect.dataflow.syntax import is_none
from autograd_explain.model import Place
from autograd_explain.program import Program, Source, called_name
from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.engine.imports import Imports
from autograd_explain.rewrite.transforms.uncut import apply_patches, keyword_added, replacement


def unused_allowed(program: Program, place: Place) -> Edits | None:
    """`allow_unused=True` in the innermost call of `grad` around the expression at the span.

    None where the code that follows computes with what would be `None`.
    """
    source, call = program.source_at(place), _call(program, place)
    if source is None or call is None or _is_computed_with(source, call):
        return None
    return _told(program, place, "allow_unused")


def unused_as_zeros(program: Program, place: Place) -> Edits | None:
    """`materialize_grads=True` there, where the code that follows computes with the gradients.

    None where nothing does, or where it looks for `None` itself.
    """
    source, call = program.source_at(place), _call(program, place)
    if source is None or call is None or not _is_computed_with(source, call):
        return None
    return _told(program, place, "materialize_grads")


def counted_as_zero(program: Program, place: Place | None) -> Edits | None:
    """`Explainer(net)`, an object of a library's that differentiates with respect to what a tuple
    holds, -> `Explainer(lambda *given: net(*given) + 0 * sum(t.sum() for t in given))`: what the
    result does not depend on has a gradient of zero."""
    source, statement = program.source_at(place), program.statement_at(place)
    if source is None or statement is None:
        return None
    for call in (n for n in ast.walk(statement) if isinstance(n, ast.Call) and n.args):
        if isinstance(call.func, ast.Attribute) and _is_tuple(program, call.args[0]):
            for where, maker in _makers(program, source, call.func.value):
                function = maker.args[0]
                text = ast.unparse(function)
                text = f"({text})" if isinstance(function, ast.Lambda) else text
                text = f"lambda *given: {text}(*given) + 0 * sum(t.sum() for t in given)"
                return apply_patches(
                    replacement(program, where.place(function.lineno, None, function), text)
                )
    return None


def _is_tuple(program: Program, given: ast.expr) -> bool:
    """Whether it is written as a tuple, or a name of one."""
    made = [node.value for _, node in index_of(program).assignments(ast.unparse(given))]
    return isinstance(made[-1] if made else given, ast.Tuple)


def _makers(
    program: Program, source: Source, holder: ast.expr
) -> Iterator[tuple[Source, ast.Call]]:
    """The call of a library's class that made an object, the last one first."""
    made = [*index_of(program).assignments(ast.unparse(holder))]
    for where, node in reversed([(s, n.value) for s, n in made] or [(source, holder)]):
        if isinstance(node, ast.Call) and node.args:
            full = Imports.of(program, where).full(ast.unparse(node.func))
            if full and full.partition(".")[0] != "torch":
                yield where, node


def _told(program: Program, place: Place, keyword: str) -> Edits | None:
    source, call = program.source_at(place), _call(program, place)
    span = None if source is None else source.span(call)
    if call is None or span is None:
        return None
    if any(k.arg in ("allow_unused", "materialize_grads") for k in call.keywords):
        return None
    return apply_patches(keyword_added(program, replace(place, span=span), keyword, "True"))


def _call(program: Program, place: Place) -> ast.Call | None:
    source, span = program.source_at(place), place.span
    if source is None or span is None:
        return None
    around = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and called_name(node) == "grad":
            own = source.span(node)
            if own is not None and (own.line, own.column) <= (span.line, span.column):
                if (span.end_line, span.end_column) <= (own.end_line, own.end_column):
                    around.append(node)
    return around[-1] if around else None


def _is_computed_with(source: Source, call: ast.Call) -> bool:
    """Whether the function around the call reads the gradients, and never looks for `None`."""
    scope = source.function_around(call) or source.tree
    after = [n for n in ast.walk(scope) if getattr(n, "lineno", 0) >= call.lineno]
    assigned = next((n for n in after if isinstance(n, ast.Assign) and n.value is call), None)
    names = set() if assigned is None else {ast.unparse(n) for n in _leaves(assigned.targets)}
    reads = (n for n in after if isinstance(getattr(n, "ctx", None), ast.Load))
    read = assigned is None or any(ast.unparse(n) in names for n in reads)
    read = read or _is_attribute_read(source, names)
    tests = (n for n in after if isinstance(n, ast.Compare))
    return read and not any(is_none(other) for test in tests for other in test.comparators)


def _is_attribute_read(source: Source, names: set[str]) -> bool:
    """Whether another function reads what an attribute keeps: `self.grads`."""
    kept = {name.rpartition(".")[2] for name in names if "." in name}
    return any(
        isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load) and n.attr in kept
        for n in ast.walk(source.tree)
    )


def _leaves(targets: list[ast.expr]) -> Iterator[ast.expr]:
    for target in targets:
        yield from target.elts if isinstance(target, (ast.Tuple, ast.List)) else (target,)
