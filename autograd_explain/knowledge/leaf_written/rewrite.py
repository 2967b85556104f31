"""An update belongs under no_grad; a value computed from the leaf gets a tensor of its own."""

import ast
from collections.abc import Iterator
from functools import partial
from itertools import takewhile

from autograd_explain.inspect.dataflow.cut_kinds import makes_leaf
from autograd_explain.inspect.facts.leaf_write import LeafWriteDetails, Purpose
from autograd_explain.inspect.facts.rebinding import hands_back_argument, rebinding_is_enough
from autograd_explain.inspect.facts.statements import Form, SourceWrite, write_at
from autograd_explain.model import Place, Role, What
from autograd_explain.program import Program, own_nodes
from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits, Proposal, Propose, Site, by_table, differing, same
from autograd_explain.rewrite.engine.edits import then
from autograd_explain.rewrite.transforms.clone import (
    clone_argument,
    clone_operand,
    clone_result,
    functional_write,
)
from autograd_explain.rewrite.transforms.grad_mode import last_update, under_no_grad
from autograd_explain.rewrite.transforms.inplace_modules import module_not_inplace
from autograd_explain.rewrite.transforms.move_statement import move_after
from autograd_explain.rewrite.transforms.out_of_place import out_of_place

from .as_argument import as_argument
from .no_grad_writes import writes_under_no_grad


def _proposed(site: Site[LeafWriteDetails]) -> Iterator[Proposal]:
    purpose, on = site.details.purpose, site.details.goes_on
    if purpose is Purpose.MODULE:
        yield from _of_module(site)
        return
    yield from differing("argument", as_argument(site))
    update = purpose in (Purpose.UPDATE, Purpose.INIT) or (not on and _stays_the_leaf(site))
    if update:
        yield from _no_grad(site, update)
    yield from _out_of_place(site, update)
    if not update and site.details.carries:
        yield from differing("own_copy", _own_copy(site))
    elif not update and not on:  # that would change the leaf at every call
        yield from _no_grad(site, update)


def _of_module(site: Site[LeafWriteDetails]) -> Iterator[Proposal]:
    """The module makes a new tensor, or gets copies wherever the function gives it a leaf; an
    object that holds the leaf is given a copy."""
    program, place, details = site.program, site.place, site.details
    handed: list[Place | None] = [place]
    if details.holder:
        handed = [site.of(n).place for n in _made(site, {details.holder})]
    else:
        yield from same("not_inplace", module_not_inplace(program, place, details.module))
        if details.calls:
            clone = partial(clone_argument, callee=details.module)
            yield from same("clone", site.at(*details.calls).each(clone))
            return
    names = [n for t in site.finding.tensors for n in t.names if n != details.holder]
    copies = (clone_operand(program, p, name) for p in handed for name in names)
    yield from same("clone", next((edits for edits in copies if edits), None))


def _no_grad(site: Site[LeafWriteDetails], update: bool) -> Iterator[Proposal]:
    program, place = site.program, site.place
    if _is_part(site):
        return  # what else the statement computes needs its graph
    names = [n for t in site.finding.tensors for n in t.names]
    whole = writes_under_no_grad(program, place, names) if update else None
    edits = whole or under_no_grad(program, place, last_update(program, place))
    if (pending := site.details.pending) is not None and edits:
        # Where it stands the backward would find its value overwritten.
        moved = then(program, edits, move_after, pending.write, pending.last)
        yield from differing("moved", moved)
    else:
        yield from (same if update else differing)("no_grad", edits)


def _out_of_place(site: Site[LeafWriteDetails], update: bool) -> Iterator[Proposal]:
    program, place = site.program, site.place
    if update and not _is_part(site):
        return  # a rebound parameter is no longer the one that the optimizer or the model holds
    edits = None if update else functional_write(program, place)
    write = write_at(program, place)
    if write is not None and _is_kept_by_object(write):
        edits = edits or clone_operand(program, place, write.target_text)
    if not update:
        edits = edits or out_of_place(program, place)
    yield from differing("out_of_place", edits)


def _is_kept_by_object(write: SourceWrite) -> bool:
    """Whether a call writes a parameter of an object's, and the statement goes on with the value:
    `w = F.relu(self.w, inplace=True)`."""
    called = write.form in (Form.METHOD, Form.CALL) and not isinstance(write.statement, ast.Expr)
    return called and isinstance(write.target, ast.Attribute)


def _own_copy(site: Site[LeafWriteDetails]) -> Edits | None:
    """`x = f(y)` -> `x = f(y).clone()`, where the function of the write gave the leaf its name."""
    names = {name for t in site.finding.tensors for name in t.names}
    # A part, `row = x[i]`, is no copy of its own.
    whole = (n for n in _made(site, names) if not isinstance(n.value, ast.Subscript))
    copies = (clone_result(site.program, site.of(n).place) for n in whole)
    return next((edits for edits in copies if edits), None)


def _made(site: Site[LeafWriteDetails], names: set[str]) -> Iterator[ast.Assign]:
    """The statements of the function of the write, above it, that gave one of the names a value."""
    source, write = site.source, site.statement
    if source is None or write is None:
        return
    for node in own_nodes(source.function_around(write) or source.tree):
        if isinstance(node, ast.Assign) and node.lineno < write.lineno:
            if len(node.targets) == 1 and ast.unparse(node.targets[0]) in names:
                yield node


def _is_part(site: Site[LeafWriteDetails]) -> bool:
    write = write_at(site.program, site.place)
    return write is not None and write.is_part


def _stays_the_leaf(site: Site[LeafWriteDetails]) -> bool:
    """Whether the written name has to go on meaning the leaf.

    Others look at the tensor that the name was given, or the program reads the name's `.grad`.
    """
    program, place, write = site.program, site.place, write_at(site.program, site.place)
    if write is None or not isinstance(write.target, ast.Name):
        # Places may reach the tensor by other paths: `params.vec`, `self.owner.vec`.
        fact = site.finding.tensor(Role.CULPRIT)
        paths = () if fact is None else fact.names
        return _gradient_is_read({path.rsplit(".", 1)[-1] for path in paths}, program)
    if not rebinding_is_enough(program, place, write.target):
        return True
    if write.form is Form.ITEM and _is_first_use(program, place, write):
        return True
    if hands_back_argument(program, place, write.target.id):
        return False  # the caller's name goes on meaning the leaf
    return _gradient_is_read({write.target.id}, program)


def _is_first_use(program: Program, place: Place, write: SourceWrite) -> bool:
    """Whether numbers are put into a leaf that nothing has used since it was made: they belong to
    its starting value (`w = torch.randn(3, requires_grad=True)`, then `w[w < 0] = 0.0`)."""
    source = program.source_at(place)
    block = None if source is None else getattr(source.parents.get(write.statement), "body", None)
    before = takewhile(lambda s: s is not write.statement, block or ())
    naming = [s for s in before if write.target_text in {getattr(n, "id", "") for n in ast.walk(s)}]
    made = naming[-1] if naming else None
    return (
        isinstance(write.value, ast.Constant)
        and isinstance(made, ast.Assign)
        and ast.unparse(made.targets[0]) == write.target_text
        and makes_leaf(made.value)
    )


def _gradient_is_read(names: set[str], program: Program) -> bool:
    return any(
        node.attr == "grad" and ast.unparse(node.value).rsplit(".", 1)[-1] in names
        for _, node in index_of(program).nodes(ast.Attribute)
    )


propose: Propose[LeafWriteDetails] = by_table(_proposed, at=What.CHANGED)
