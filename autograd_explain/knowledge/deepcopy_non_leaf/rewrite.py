"""Store the value without its graph, drop it before copying, or copy the values themselves."""

import ast
import re

from autograd_explain.model import Place, What
from autograd_explain.program import Program, last_name
from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.analysis.effects import fresh
from autograd_explain.rewrite.engine.edits import merge
from autograd_explain.rewrite.engine.tree import statement_at
from autograd_explain.rewrite.transforms.grad_mode import under_no_grad

from .diagnose import Details
from .parametrization import parametrized


def _numbers_kept(site: Site[Details]) -> Edits | None:
    """The attribute gets the value without its graph; the pass that stores it goes on with the
    value itself, under a name of its own."""
    tree, own = statement_at(site.program, site.place)
    if own is None or not site.details.reads:
        return site.called("detach")
    local = fresh(tree, own, site.details.attribute)
    kept = f"{local} = {{x}}\n{{attribute}} = {local}.detach()"
    edits = site.instead(kept, attribute=site.details.reads[0])
    return merge(edits, site.at(*site.details.reads).replaced(local))


def _parametrized(site: Site[Details]) -> Edits | None:
    return parametrized(site.program, site.details.norm, site.details.asked)


def _unrecorded(site: Site[Details]) -> Edits | None:
    """Each statement that made a part under `torch.no_grad()`."""
    places = site.details.makers
    if not all(isinstance(site.at(place).statement, _SIMPLE) for place in places):
        return None  # the head of a loop: all that its body computes would go unrecorded
    return site.at(*places).each(under_no_grad)


def _running(site: Site[Details]) -> Edits | None:
    """A running statistic is kept without its graph; one that is written in place is written so."""
    if site.details.written is not None:
        return under_no_grad(site.program, site.details.written)
    return site.called("detach") if site.details.running else None


def _dropped(site: Site[Details]) -> Edits | None:
    if site.place.function == "__init__":
        return None  # what reads it later would find nothing
    copied = site.details.copied or site.finding.place(What.FAILED)  # a library copies
    name = "" if copied is None else _name_at(site, copied)
    code = _ALL_DROPPED if site.details.whole else "{name} = None"
    given = {"whole": site.details.whole, "attribute": site.details.attribute}
    return site.at(copied).before(code, name=name, **given) if name else None


_ALL_DROPPED = (
    "for module in {whole}.modules():\n"
    '    if getattr(module, "{attribute}", None) is not None:\n'
    "        module.{attribute} = None\n"
)
_ITEMS = re.compile(r"(\[[^\]]*\])+$")  #: `[0]` of `net.stats[0]`
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _name_at(site: Site[Details], copied: Place) -> str:
    """The attribute to drop, as it is called before the statement of the copy; "" where that is not
    known: in a comprehension, and in a function for names of the notebook, which may mean another
    object in the next call.
    """
    program, finding = site.program, site.finding
    if any(isinstance(outer, _COMPREHENSIONS) for outer in site.at(copied).around):
        return ""
    names = [n for n in finding.tensors[0].names if n.isascii() and "." in n]
    if _is_stored_whole(program, finding.details.attribute):
        names = [_ITEMS.sub("", n) for n in names]
    names = [n for n in names if n[-1] != "]"]
    of_copied = f"{finding.details.copied_text}."
    own = [n for n in names if finding.details.copied and n.startswith(of_copied)]
    return next(iter(own or ([] if copied.function else names)), "")


def _is_stored_whole(program: Program, attribute: str) -> bool:
    """Whether a statement assigns a new tuple, list or dictionary to the attribute each time, so
    that nothing has to be kept of an older one."""
    assigned = index_of(program).nodes(ast.Assign)
    made = (n.value for _, n in assigned for t in n.targets if last_name(t) == attribute)
    values = [v for v in made if not isinstance(v, ast.Constant)]
    return bool(values) and all(
        isinstance(v, _COMPREHENSIONS) or getattr(v, "elts", None) or getattr(v, "keys", None)
        for v in values
    )


def _values(site: Site[Details]) -> Edits | None:
    """`copy.deepcopy(h)` -> `h.detach().clone()`"""
    copied = site.at(site.details.copied)
    call = copied.outer
    if not isinstance(call, ast.Call) or copied.node not in call.args:
        return None
    return copied.of(call).replaced("{x}.detach().clone()", x=copied.place)


propose: Propose[Details] = by_table(
    Fix("detach", _numbers_kept, when=lambda d: d.looks_back),
    Fix("parametrization", _parametrized, when=lambda d: d.norm == "weight_norm"),
    Fix("other_start", _parametrized, when=lambda d: d.norm == "spectral_norm", changes=True),
    Fix("no_grad", _unrecorded),
    Fix("detach_running", _running, when=lambda d: not d.looks_back, changes=True),
    Fix("drop", _dropped, when=lambda d: d.stored and not d.running),
    Fix("values", _values, when=lambda d: d.direct, changes=True),
)
