"""What cut the graph taken back: a call removed, a NumPy function replaced, a flag added.

Several expressions of one statement change at once here, some inside others, so the changes are
patches of the text (everything around them stays to the letter).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...model import Edit, Edits, Place, Span
from ...program import Program, Source, called_name, is_literal
from ...program_index import index_of
from ..engine import cst_tools
from ..engine.cst_tools import filled, fitted, parse
from ..engine.draft import is_program
from ..engine.imports import imports_at
from ..engine.tree import tree_at

#: What NumPy and torch compute alike, element by element or over an axis; NumPy functions that
#: torch has under the same name, and those it calls otherwise.
ALIKE = frozenset(
    "abs absolute fabs sqrt exp log log1p expm1 log2 log10 sin cos tan tanh sinh cosh arcsin "
    "arccos arctan asin acos atan square sign sum mean clip power norm".split()
)
_SAME = ALIKE | frozenset(
    "prod cumsum maximum minimum where dot matmul outer einsum stack reshape floor ceil logaddexp "
    "trace fft.fft fft.ifft fft.rfft fft.irfft linalg.norm linalg.inv linalg.det "
    "linalg.solve".split()
)
_OTHER = {"concatenate": "cat", "absolute": "abs", "power": "pow", "fabs": "abs"}
_OF_LISTS = frozenset({"stack", "concatenate"})  #: torch's take a list as well
_OF_TENSORS = frozenset({"maximum", "minimum", "logaddexp"})  #: torch's take no numbers
_ENDINGS = frozenset(
    "detach item numpy tolist cpu long int bool byte short char detach_ __array__".split()
)


@dataclass(frozen=True)
class Patch:
    """New text for a range of one source; an empty range inserts."""

    source: Source
    span: Span
    text: str


def apply_patches(patches: Iterable[Patch]) -> Edits | None:
    """The patches as edits; None where two overlap or a result does not compile."""
    by_source: dict[Source, list[Patch]] = {}
    for patch in dict.fromkeys(patches):
        by_source.setdefault(patch.source, []).append(patch)
    edits = [_edit(group) for group in by_source.values()]
    return tuple(e for e in edits if e is not None) if edits and all(edits) else None


def apply_all(groups: Iterable[Sequence[Patch]]) -> Edits | None:
    """The patches of several changes as edits; None where one of the changes has none."""
    known = list(groups)
    return apply_patches(p for group in known for p in group) if all(known) else None


def _edit(patches: list[Patch]) -> Edit | None:
    source = patches[0].source
    lines = source.text.split("\n")
    patches.sort(key=lambda p: (p.span.line, p.span.column), reverse=True)
    end = (len(lines) + 1, 0)
    for patch in patches:
        span = patch.span
        if (span.end_line, span.end_column) > end:
            return None
        end = (span.line, span.column)
        before = lines[span.line - 1][: span.column]
        after = lines[span.end_line - 1][span.end_column :]
        lines[span.line - 1 : span.end_line] = (before + patch.text + after).split("\n")
    text = "\n".join(lines)
    if text == source.text or not is_program(text):
        return None
    return Edit(source.cell, source.file, source.text, text)


# -- expressions at places -------------------------------------------------------------------


def code_of(program: Program, place: Place | None, node: ast.AST) -> str:
    """A node's text as the user wrote it."""
    source = program.source_at(place)
    segment = None if source is None else source.segment(node)
    return segment or ast.unparse(node)


def replacement(program: Program, place: Place | None, code: str) -> list[Patch]:
    """Another expression in the place of the one at the span; [] where there is none."""
    source, tree = program.source_at(place), tree_at(program, place)
    if source is None or place is None or place.span is None or not program.expression_at(place):
        return []
    old = tree.node(place)  # None for `*xs`
    new = None if old is None or old.lpar else parse(code)
    fit = code if old is None or new is None else tree.code(fitted(tree, old, new))
    return [Patch(source, place.span, fit)]


def without_cut(program: Program, place: Place | None) -> list[Patch]:
    """`x.detach().numpy()`, `float(x)`, `x.long()` -> `x`; `x.data.clone()` -> `x.clone()`;
    `math.sin(x)` -> `torch.sin(x)`; `math.exp(-x.item())` -> `torch.exp(-x)`."""
    node = program.expression_at(place)
    if node is None or place is None:
        return []
    inner, behind = without_ending(node), ""
    if both := _to_both(program, place, node):
        return both
    if inner is not node and (through := _straight_through(program, place, inner)):
        return replacement(program, place, through)
    copied = _copied(inner)
    if copied is not None and without_ending(copied) is not copied:
        inner, behind = without_ending(copied), ".clone()"
    if inner is node:
        if called_name(node) == "state_dict":
            return keyword_added(program, place, "keep_vars", "True")
        return torch_instead_of_numpy(program, place)
    code = filled(f"{{x}}{behind}", x=code_of(program, place, inner))
    found = replacement(program, place, code)
    around = _computed_around(program, place, node)
    return [] if around is None else [*found, *around]


def uncut_at(program: Program, place: Place | None) -> Edits | None:
    return apply_patches(without_cut(program, place))


def passed_through(total: ast.AST | None) -> tuple[ast.expr, ast.expr, ast.BinOp] | None:
    """`z`, the other side and the difference in it of `z + (q - z).detach()`, either way round and
    with any end or none."""
    added = isinstance(total, ast.BinOp) and isinstance(total.op, ast.Add)
    sides = (total.left, total.right) if added and isinstance(total, ast.BinOp) else ()
    for kept, other in zip(sides, sides[::-1], strict=True):
        inner = without_ending(other)
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub):
            if ast.dump(inner.right) == ast.dump(kept):
                return kept, other, inner
    return None


def _straight_through(program: Program, place: Place, total: ast.expr) -> str:
    """`(z + (q - z).detach())` for `(z + (q - z)).detach()`: without any end what is added and
    taken away again would leave `z` no gradient."""
    kept, other, inner = passed_through(total) or (None, None, None)
    if kept is None or inner is None or other is not inner:
        return ""
    first, last = code_of(program, place, kept), code_of(program, place, inner)
    return f"({first} + ({last}).detach())"


def _to_both(program: Program, place: Place, node: ast.expr) -> list[Patch]:
    """`z + (q - z).detach()`, whose gradient `z` alone gets, -> `q + (z - z.detach())`, where both
    do; without any end `z` would get none."""
    source = program.source_at(place)
    total = None if source is None else source.parents.get(node)
    kept, other, inner = passed_through(total) or (None, None, None)
    if source is None or other is not node or inner is node or inner is None:
        return []
    if not isinstance(kept, (ast.Name, ast.Attribute)):
        return []
    first, last = code_of(program, place, inner.left), code_of(program, place, kept)
    code = f"{first} + ({last} - {last}.detach())"
    return replacement(program, replace(place, span=source.span(total)), code)


def _computed_around(program: Program, place: Place, node: ast.expr) -> list[Patch] | None:
    """`math.exp(…)` around a number that becomes a tensor, under torch's name; None where torch has
    no such function."""
    source = program.source_at(place)
    if source is None:
        return []
    patches: list[Patch] = []
    imports, inner = imports_at(program, place), node
    while True:
        around = source.parents.get(inner)
        if isinstance(around, ast.Call) and inner in around.args:
            if imports.full(ast.unparse(around.func)).partition(".")[0] != "math":
                return patches
            found = torch_instead_of_numpy(program, replace(place, span=source.span(around)))
            if not found:
                return None
            patches += found
        elif not isinstance(around, (ast.UnaryOp, ast.BinOp)):
            return patches
        inner = around


def _copied(node: ast.expr) -> ast.expr | None:
    """`x` of `x.clone()`: the copy stays, for what it protects from a later write."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.value if node.func.attr == "clone" else None
    return None


def keyword_added(
    program: Program, place: Place | None, name: str, value: str, *, position: int | None = None
) -> list[Patch]:
    """`name=value` as the last argument of the call at the span, or in place of the one that it has
    for it, by name or by `position`."""
    tree = tree_at(program, place)
    call = tree.call(place)
    if call is None:
        return []
    old, whole = cst_tools.keyword(call, name), tree.span(call)
    given = cst_tools.positional(call) if old is None and position is not None else []
    old = given[position] if position is not None and position < len(given) else old
    if old is not None:
        return [Patch(tree.source, tree.span(old.value), value)]
    if call.args:
        return [Patch(tree.source, tree.span(call.args[-1]).end, f", {name}={value}")]
    inside = replace(whole, end_column=whole.end_column - 1)
    return [Patch(tree.source, inside.end, f"{name}={value}")]


def torch_instead_of_numpy(program: Program, place: Place | None) -> list[Patch]:
    """`np.sqrt(x)` -> `torch.sqrt(x)`, `np.sum(terms, axis=0)` of a list ->
    `torch.sum(torch.stack(terms), axis=0)` (torch knows `axis` and `keepdims`, too),
    `np.maximum(x, 0.0)` -> `torch.maximum(x, torch.as_tensor(0.0))`; [] for what torch lacks."""
    source, node = program.source_at(place), program.expression_at(place)
    imports = imports_at(program, place)
    torch = imports.local("torch")
    if source is None or place is None or torch is None or not isinstance(node, ast.Call):
        return []
    module, _, name = imports.full(ast.unparse(node.func)).partition(".")
    if module not in ("numpy", "math") or name not in _SAME | {*_OTHER}:
        return []
    called = f"{torch}.{_OTHER.get(name, name)}"
    listed = bool(node.args) and name not in _OF_LISTS and is_list(program, node.args[0])
    inside = _in_call(source, node.args[0], f"{torch}.stack") if listed else []
    if name in _OF_TENSORS:
        numbers = (n for n in node.args if is_literal(n))
        inside += [p for n in numbers for p in _in_call(source, n, f"{torch}.as_tensor")]
    return [Patch(source, source.span(node.func), called), *inside]


def _in_call(source: Source, node: ast.expr, function: str) -> list[Patch]:
    return surrounded(source, node, node, f"{function}(", ")")


def is_list(program: Program, node: ast.expr) -> bool:
    """Whether an expression is a list, or names one that the program makes."""
    if isinstance(node, (ast.List, ast.ListComp, ast.Tuple)):
        return True
    key, index = ast.unparse(node), index_of(program)
    calls = (n for _, n in index.nodes(ast.Call) if called_name(n) in ("append", "extend"))
    if any(isinstance(n.func, ast.Attribute) and ast.unparse(n.func.value) == key for n in calls):
        return True
    made = (n for _, n in index.nodes(ast.Assign) if isinstance(n.value, (ast.List, ast.ListComp)))
    return any(ast.unparse(t) == key for n in made for t in n.targets)


def surrounded(
    source: Source, outer: ast.expr, inner: ast.expr, before: str = "", after: str = ""
) -> list[Patch]:
    """Other text around an expression in another, or around one: `x` of `f(x)`, `f(x)` of `x`."""
    whole, kept = source.span(outer), source.span(inner)
    return [Patch(source, whole.until(kept), before), Patch(source, whole.since(kept), after)]


def tensors_instead_of_copy(program: Program, place: Place | None, many: bool) -> list[Patch]:
    """`torch.tensor(x)` -> `x`; of several tensors -> `torch.stack(x)`.  A dtype is kept."""
    source, node = program.source_at(place), program.expression_at(place)
    torch = imports_at(program, place).local("torch")
    if source is None or torch is None or not isinstance(node, ast.Call) or not node.args:
        return []
    bracket = f"{torch}.stack(" if many else ("" if isinstance(node.args[0], _ATOMS) else "(")
    close = ")" if bracket else ""
    around = surrounded(source, node, node.args[0], bracket, f"{close}{as_dtype_of(source, node)}")
    return [*around, *(_joined(source, node.args[0], torch) if many else ())]


def as_dtype_of(source: Source, call: ast.Call) -> str:
    """`.to(d)`, for what is put in the place of a call with `dtype=d`."""
    found = next((k.value for k in call.keywords if k.arg == "dtype"), None)
    return "" if found is None else f".to({source.segment(found)})"


def joined_at(program: Program, place: Place | None, many: bool = False) -> Edits | None:
    return apply_patches(tensors_instead_of_copy(program, place, many))


def _joined(source: Source, node: ast.expr, torch: str) -> Iterator[Patch]:
    """What a list holds made tensors: `[[a, 0.0]]` -> `[torch.stack([a, torch.tensor(0.0)])]`."""
    for element in [node.elt] if isinstance(node, ast.ListComp) else getattr(node, "elts", ()):
        nested = isinstance(element, (ast.List, ast.Tuple, ast.ListComp))
        if nested or is_literal(element):
            yield from _in_call(source, element, f"{torch}.{'stack' if nested else 'tensor'}")
        if nested:
            yield from _joined(source, element, torch)


def called(program: Program, place: Place | None, method: str) -> list[Patch]:
    """`.method()` behind the expression at the span, in parentheses where it needs them."""
    tree = tree_at(program, place)
    node = tree.node(place)
    if node is None:
        return []
    source, span, code = tree.source, tree.span(node), tree.code(node)
    if node.rpar:
        return [Patch(source, tree.span(node.rpar[-1]).end, f".{method}()")]
    before, after = ("", "") if filled("{x}.f", x=code) == f"{code}.f" else ("(", ")")
    return [Patch(source, span.start, before), Patch(source, span.end, f"{after}.{method}()")]


_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.ListComp, ast.Constant)


def without_ending(node: ast.expr) -> ast.expr:
    """`x` of `x.detach().cpu().numpy()`, of `float(x)`; the node itself where nothing ends."""
    while True:
        if isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in _ENDINGS and node.func.attr not in ("to", "type"):
                return node
            node = node.func.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id not in ("float", "int") or len(node.args) != 1:
                return node
            node = node.args[0]
        else:
            return node
