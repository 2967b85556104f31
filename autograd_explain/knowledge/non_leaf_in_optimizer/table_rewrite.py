"""A computed weight kept as a plain attribute instead of in the module's table of parameters."""

from __future__ import annotations

import ast

from autograd_explain.model import Place
from autograd_explain.program import Program, called_name, last_name, own_nodes
from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.transforms.spot import Spot
from autograd_explain.rewrite.transforms.uncut import code_of

_FORWARD = ("forward", "__call__")


def plain_attribute(program: Program, place: Place) -> Edits | None:
    """`m._parameters[name] = v` -> `m._parameters.pop(name, None)` and `setattr(m, name, v)`.

    `place` is the place of `v`.  None where the value is not computed anew in each forward pass,
    and where other statements use the table of parameters.
    """
    source, value = program.source_at(place), program.expression_at(place)
    if source is None or value is None or not _is_only_use(program, value):
        return None
    function = source.function_at(place)
    if function is None or not _runs_in_forward(program, function.name):
        return None
    for node in own_nodes(function):
        if isinstance(node, ast.Assign) and node.value is value and len(node.targets) == 1:
            code = _code(program, place, node.targets[0], value)
            return Spot(program, place).instead("{code}", code=code)
    return None


def _code(program: Program, place: Place, target: ast.expr, value: ast.expr) -> str:
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Attribute):
        return ""
    owner, key = target.value.value, target.slice
    if not (_is_path(owner) and (_is_path(key) or _is_text(key))):
        return ""  # evaluated twice
    module, name = code_of(program, place, owner), code_of(program, place, key)
    new = code_of(program, place, value)
    gone = f"{module}._parameters.pop({name}, None)"
    if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isidentifier():
        return f"{gone}\n{module}.{key.value} = {new}\n"
    return f"{gone}\nsetattr({module}, {name}, {new})\n"


def _is_path(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    return isinstance(node, ast.JoinedStr) and all(
        _is_path(v.value) for v in node.values if isinstance(v, ast.FormattedValue)
    )


def _is_only_use(program: Program, value: ast.expr) -> bool:
    """Whether nothing but the statement with this value looks into a table of parameters."""
    index = index_of(program)
    uses = [n for _, n in index.nodes(ast.Attribute) if n.attr == "_parameters"]
    return len(uses) == 1 and any(n.value is value for _, n in index.nodes(ast.Assign))


def _runs_in_forward(program: Program, name: str) -> bool:
    """Whether a forward pass calls a function of this name, itself or through others, or a hook
    that runs before it does."""
    calls: dict[str, set[str]] = {}
    hooked: set[str] = set()
    for _, node in index_of(program).nodes(ast.FunctionDef):
        made = {called_name(n) for n in own_nodes(node)}
        calls[node.name] = calls.get(node.name, set()) | made
    for _, call in index_of(program).calls("register_forward_pre_hook", of="torch"):
        given = [n for a in call.args for n in ast.walk(a)]
        hooked |= {last_name(n) for n in given}
    reached, pending = set(), [*_FORWARD, *hooked]
    while pending:
        function = pending.pop()
        if function not in reached:
            reached.add(function)
            pending += calls.get(function, ())
    return name in reached
