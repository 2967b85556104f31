"""Each kind of cut has its own repair; where torch defines no gradient, the value before it."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace

from autograd_explain.model import Event, Finding, Place, Safety, What
from autograd_explain.program import Program, called_name
from autograd_explain.program_index import index_of
from autograd_explain.rewrite.engine.imports import imports_at
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.numpy_detour import stays_in_numpy
from autograd_explain.rewrite.transforms.training_step import statements_after
from autograd_explain.rewrite.transforms.uncut import (
    Patch,
    apply_patches,
    keyword_added,
    node_at,
    numbers_in,
    replacement,
    tensors_instead_of_copy,
    torch_instead_of_numpy,
    without_cut,
)

from .deep_copy import deep_copied
from .thaw import thawed_in_turn


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    make = _MAKERS.get(finding.variant)
    cause = finding.event(What.CAUSE)
    if make is not None and cause is not None and cause.place is not None:
        yield from make(finding, program, cause.place)


def _uncut(finding: Finding, program: Program, place: Place) -> Iterator[Proposal]:
    """Leave out the call that cut, and what would cut once more behind it."""
    causes = [e.place for e in finding.events if e.what is What.CAUSE and e.place is not None]
    later = [e for e in finding.events if e.what is What.DETACHED]
    groups = [without_cut(program, p) for p in causes]
    groups += [_passing(program, e) for e in later if not _within(e.place, causes)]
    patches = [p for g in groups for p in g] if all(groups) else []
    if any(stays_in_numpy(program, p, patches) for p in causes):
        return
    edits = apply_patches(patches)
    if edits:
        yield Proposal("uncut", edits)


def _within(place: Place | None, outer: list[Place]) -> bool:
    """`x.detach()` inside `x.detach().numpy()`, which goes as a whole."""
    if place is None or place.span is None:
        return False
    for one in outer:
        if (one.cell, one.file) == (place.cell, place.file) and one.span is not None:
            starts = (one.span.line, one.span.column) <= (place.span.line, place.span.column)
            end = (place.span.end_line, place.span.end_column)
            if starts and end <= (one.span.end_line, one.span.end_column):
                return True
    return False


def _passing(program: Program, event: Event) -> list[Patch]:
    """An operation that would cut again, made one that lets gradient through."""
    if event.op == "copy":
        return _without_copy(program, event.place)
    if event.op in ("numpy", "number", "detach"):
        return [*without_cut(program, event.place), *_other_arrays(program, event.place)]
    return []


def _other_arrays(program: Program, place: Place | None) -> list[Patch]:
    """The targets in the same expression must stay tensors, too: `p - y.numpy()`."""
    node, source = node_at(program, place), program.source_at(place) if place else None
    if (
        node is None
        or source is None
        or place is None
        or not torch_instead_of_numpy(program, place)
    ):
        return []
    found: list[Patch] = []
    for inner in ast.walk(node):
        is_array = isinstance(inner, ast.Call) and getattr(inner.func, "attr", "") == "numpy"
        if is_array and isinstance(inner, ast.Call):
            found += without_cut(program, replace(place, span=source.span(inner)))
    return found


def _copy(finding: Finding, program: Program, place: Place) -> Iterator[Proposal]:
    edits = apply_patches(_without_copy(program, place))
    if edits:
        yield Proposal("no_copy", edits)


def _without_copy(program: Program, place: Place | None) -> list[Patch]:
    node = node_at(program, place)
    if not isinstance(node, ast.Call) or not node.args:
        return []
    given = node.args[0]
    many = isinstance(given, (ast.List, ast.ListComp, ast.Tuple)) or _is_list(program, given)
    if many and numbers_in(given):
        return []
    return tensors_instead_of_copy(program, place, many)


def _is_list(program: Program, node: ast.expr) -> bool:
    """Whether the program makes a list of what the expression names."""
    key = ast.unparse(node)
    for _, n in index_of(program).nodes(ast.AST):
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute):
            if n.func.attr in ("append", "extend") and ast.unparse(n.func.value) == key:
                return True
        if isinstance(n, ast.Assign) and isinstance(n.value, (ast.List, ast.ListComp)):
            if any(ast.unparse(t) == key for t in n.targets):
                return True
    return False


def _before(finding: Finding, program: Program, place: Place) -> Iterator[Proposal]:
    """Use the value from before the operation without gradient."""
    use = next(iter(finding.places.get("use", ())), None)
    text = finding.facts.get("instead", "")
    edits = apply_patches(_instead(program, use, text)) if text else None
    if edits and _fits_loss(finding, program, use):
        yield Proposal("value_before", edits, Safety.CHANGES_MEANING, intended_difference=True)
    elif node_at(program, place) is not None and _is_cast(node_at(program, place)):
        edits = apply_patches(without_cut(program, place))
        if edits:
            yield Proposal("no_cast", edits, Safety.CHANGES_MEANING, intended_difference=True)


def _integer(finding: Finding, program: Program, place: Place) -> Iterator[Proposal]:
    """An accuracy as objective: the cross entropy of the same scores and labels."""
    yield from _before(finding, program, place)
    objective = next(iter(finding.places.get("objective", ())), None)
    if objective is None:
        return
    functional = imports_at(program, objective).local("torch.nn.functional")
    scores, labels = finding.facts["operand"], finding.facts["labels"]
    code = f"{functional}.cross_entropy({scores}, {labels})"
    edits = apply_patches(replacement(program, objective, code)) if functional else None
    if edits:
        yield Proposal("cross_entropy", edits, Safety.CHANGES_MEANING, intended_difference=True)


def _instead(program: Program, use: Place | None, text: str) -> list[Patch]:
    """`pred.float()` becomes `logits` as a whole: the cast only undid the integers."""
    source, node = program.source_at(use) if use else None, node_at(program, use)
    if source is None or node is None or use is None:
        return []
    for outer in ast.walk(source.tree):
        if isinstance(outer, ast.Call) and isinstance(outer.func, ast.Attribute):
            bare = not outer.args and not outer.keywords
            if outer.func.value is node and outer.func.attr in ("float", "double") and bare:
                return replacement(program, replace(use, span=source.span(outer)), text)
    return replacement(program, use, text)


#: Losses that take scores per class together with class numbers.
_TAKES_SCORES = ("cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss", "multi_margin_loss")


def _fits_loss(finding: Finding, program: Program, use: Place | None) -> bool:
    """A comparison or a cast keeps the shape; an argmax does not, and few losses take scores."""
    cause = finding.event(What.CAUSE)
    if finding.variant == "compare" or _is_cast(node_at(program, cause.place if cause else None)):
        return True
    called = {called_name(n) for n in _statement_calls(program, use)}
    made = {
        ast.unparse(t)
        for _, n in index_of(program).nodes(ast.Assign)
        if called_name(n.value) in _TAKES_SCORES
        for t in n.targets
    }
    return bool(called.intersection(_TAKES_SCORES) or called.intersection(made))


def _statement_calls(program: Program, place: Place | None) -> Iterator[ast.Call]:
    """The calls on the place's line."""
    source = program.source_at(place) if place is not None else None
    if source is None or place is None:
        return
    line = place.line - source.offset
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or 0):
            yield node


def _is_cast(node: ast.AST | None) -> bool:
    return called_name(node) in _CASTS if node is not None else False


_CASTS = ("long", "int", "bool", "byte", "short", "char", "to", "type")


def _create_graph(finding: Finding, program: Program, place: Place) -> Iterator[Proposal]:
    edits = apply_patches(keyword_added(program, place, "create_graph", "True"))
    if edits:
        yield Proposal("create_graph", edits)


def _rsample(finding: Finding, program: Program, place: Place) -> Iterator[Proposal]:
    """Only distributions with a reparametrised draw have `rsample`."""
    node, source = node_at(program, place), program.source_at(place)
    names = {called_name(n) for _, n in index_of(program).nodes(ast.Call)}
    if names.intersection(_DISCRETE) or not names.intersection(_REPARAMETRISED):
        return
    if source is None or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    receiver = ast.get_source_segment(source.python, node.func.value) or ""
    function = replace(place, span=source.span(node.func))
    edits = apply_patches(replacement(program, function, f"{receiver}.rsample"))
    if edits:
        yield Proposal("rsample", edits, Safety.CHANGES_MEANING, intended_difference=True)


_REPARAMETRISED = frozenset({
    "Normal", "MultivariateNormal", "Laplace", "Uniform", "Beta", "Gamma", "LogNormal", "Dirichlet",
    "Cauchy", "Gumbel", "StudentT", "Exponential", "RelaxedBernoulli", "RelaxedOneHotCategorical",
})  # fmt: skip
_DISCRETE = frozenset({
    "Categorical", "Bernoulli", "Poisson", "Binomial", "Geometric", "OneHotCategorical",
})  # fmt: skip


def _flag(finding: Finding, program: Program, place: Place) -> Iterator[Proposal]:
    edits = apply_patches(keyword_added(program, place, "requires_grad", "True"))
    if edits:
        yield Proposal("requires_grad", edits)


def _unfrozen(finding: Finding, program: Program, place: Place) -> Iterator[Proposal]:
    """The part that is to learn gets its flags back behind the statement that froze everything."""
    after = next(iter(finding.places.get("freeze", ())), None)
    parts = [p for p in finding.facts["part"].split(", ") if p]
    if after is not None and parts:
        calls = [f"{part}.requires_grad_(True)" for part in parts]
        edits = statements_after(program, after, calls)
        if edits:
            yield Proposal("unfreeze", edits, intended_difference=True)
        return
    turns = thawed_in_turn(program, place)
    if turns:
        yield Proposal("thaw", turns, intended_difference=True)


def _copied(finding: Finding, program: Program, place: Place) -> Iterator[Proposal]:
    edits = deep_copied(program, place)
    if edits:
        yield Proposal("copy_module", edits, intended_difference=True)


Maker = Callable[[Finding, Program, Place], Iterator[Proposal]]
_MAKERS: dict[str, Maker] = {
    "number": _uncut,
    "detach": _uncut,
    "numpy": _uncut,
    "copy": _copy,
    "compare": _before,
    "integer": _integer,
    "gradient": _create_graph,
    "sample": _rsample,
    "flag": _flag,
    "frozen": _unfrozen,
    "shared": _copied,
}
