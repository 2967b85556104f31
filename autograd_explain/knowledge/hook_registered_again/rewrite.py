"""The hook registered once, or taken away behind the backward that it is for."""

import libcst as cst

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.analysis.effects import bound_in, fresh, local_names, used_names
from autograd_explain.rewrite.engine.cst_tools import block, make, method_name, walk
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import Statement, Tree, statement_at, statements_in
from autograd_explain.rewrite.transforms.kept_argument import constructor_of


def _before_loop(site: Site[None]) -> Edits | None:
    """A hook of which no name is given another value in a round goes in front of the loop."""
    tree, own = statement_at(site.program, site.place)
    whole = None if own is None else _whole(tree, own)
    loop = None if whole is None else next(iter(tree.loops(whole)), None)
    if whole is None or loop is None or tree.block_of(whole) is not loop.body:
        return None
    if used_names(whole) & bound_in(loop) - bound_in(whole):
        return None
    return Draft(tree).move([whole], loop, after=False).edits()


def _in_init(site: Site[None]) -> Edits | None:
    """What only reads the object itself goes from its method to the end of `__init__`."""
    tree, own = statement_at(site.program, site.place)
    whole = None if own is None else _whole(tree, own)
    found = constructor_of(tree, whole)
    if whole is None or found is None or tree.outer(whole) is not found.method:
        return None
    method, others = found.method, statements_in(found.owner.body)
    init = next((s for s in others if _is_init(s) and s is not method), None)
    if not isinstance(init, cst.FunctionDef) or _itself(init) != _itself(method):
        return None
    if used_names(whole) & (local_names(method) - bound_in(whole) - {_itself(method)}):
        return None
    return Draft(tree).move([whole], statements_in(init.body)[-1], after=True).edits()


def _removed(site: Site[None]) -> Edits | None:
    """`handle = w.register_hook(f)`, and `handle.remove()` behind the backward; handles in a list
    where a loop registers several."""
    tree, own = statement_at(site.program, site.place)
    if not isinstance(own, cst.Expr):
        return None
    whole = _whole(tree, own)
    inside, at = tree.siblings(whole)
    backwards = [n for n, s in enumerate(inside) if n > at and _goes_backward(s)]
    run = inside[at : backwards[-1] + 1] if backwards else []
    if not run or any(isinstance(n, cst.Return) for s in run for n in walk(s)):
        return None
    draft = Draft(tree)
    if whole is own:
        handle = fresh(tree, own, "handle")
        draft.instead(own, [make(f"{handle} = {{x}}", x=own.value)])
        return draft.after(run[-1], [make(f"{handle}.remove()")]).edits()
    handle, handles = fresh(tree, own, "handle"), fresh(tree, own, "handles")
    draft.before(whole, [make(f"{handles} = []")])
    draft.instead(own, [make(f"{handles}.append({{x}})", x=own.value)])
    removed = block(f"for {handle} in {handles}:\n    {handle}.remove()")
    return draft.after(run[-1], [removed]).edits()


def _whole(tree: Tree, own: Statement) -> Statement:
    """The loop that does nothing but register, where one is around."""
    outer = tree.outer(own)
    while isinstance(outer, (cst.For, cst.If)) and statements_in(outer.body) == [own]:
        if outer.orelse is not None:
            break
        own, outer = outer, tree.outer(outer)
    return own


def _goes_backward(statement: Statement) -> bool:
    return any(method_name(n) == "backward" for n in walk(statement))


def _is_init(statement: Statement) -> bool:
    return isinstance(statement, cst.FunctionDef) and statement.name.value == "__init__"


def _itself(method: cst.FunctionDef) -> str:
    """What a method calls its object."""
    return method.params.params[0].name.value if method.params.params else ""


propose: Propose[None] = by_table(
    Fix("before_loop", _before_loop, changes=True),
    Fix("in_init", _in_init, changes=True),
    Fix("removed", _removed, changes=True),
)
