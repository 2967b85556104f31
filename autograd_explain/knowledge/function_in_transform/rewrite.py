"""`forward` without its context, and `generate_vmap_rule = True` at the top of the class; of a
Function that is not the program's the same derivative without a transform."""

import libcst as cst

from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.engine.cst_tools import calls_in, dotted, expression
from autograd_explain.rewrite.engine.draft import Draft, Drafts
from autograd_explain.rewrite.engine.imports import Imports, imports_at
from autograd_explain.rewrite.engine.tree import Tree, statement_at, tree_of

from .apart import context_apart, with_rule
from .diagnose import Details

#: What gives the same by backward (torch/autograd/functional.py).
_BY_BACKWARD = {"hessian": "hessian", "jacrev": "jacobian", "jacfwd": "jacobian"}


def _by_backward(site: Site[Details]) -> Edits | None:
    """`torch.func.hessian(f)(x)` -> `torch.autograd.functional.hessian(f, x, create_graph=True)`,
    which leads back to parameters that `f` reads, as the transform's result does."""
    drafts = Drafts()
    for place in site.details.lines:
        tree, own = statement_at(site.program, place)
        imports = imports_at(site.program, place)
        for call in calls_in(own):
            if (new := _without_transform(tree, imports, call)) is not None:
                drafts[tree].replace(call, new)
    return drafts.edits()


def _without_transform(tree: Tree, imports: Imports, call: cst.Call) -> cst.BaseExpression | None:
    made = call.func
    if not isinstance(made, cst.Call) or len(made.args) != 1 or len(call.args) != 1:
        return None
    package, _, name = imports.full(dotted(made.func)).rpartition(".")
    function = imports.local(f"torch.autograd.functional.{_BY_BACKWARD.get(name, '')}")
    given = (made.args[0], call.args[0])
    if package != "torch.func" or name not in _BY_BACKWARD or function is None:
        return None
    if any(arg.keyword is not None or arg.star for arg in given):
        return None
    f, x = (tree.code(arg.value) for arg in given)
    return expression(f"{function}({f}, {x}, create_graph=True)")


def _set_apart(site: Site[Details]) -> Edits | None:
    details = site.details
    return context_apart(site.program, details.forward, details.tensors, details.batched)


def _generated(site: Site[Details]) -> Edits | None:
    for source, node in index_of(site.program).classes(site.details.function)[:1]:
        tree = tree_of(site.program, source)
        owner = tree.statement(source.place(node.lineno, None, node))
        if owner is not None:
            return Draft(tree).change(owner, with_rule).edits()
    return None


propose: Propose[Details] = by_table(
    Fix("setup_context", _set_apart, when=lambda d: d.forward is not None),
    Fix("generate_rule", _generated, when=lambda d: d.batching),
    Fix("by_backward", _by_backward, when=lambda d: bool(d.lines)),
)
