"""Store the value without its graph, drop it before copying, or copy the values themselves."""

import ast
import re
from dataclasses import replace

from autograd_explain.model import Finding, Place, What
from autograd_explain.program import Program, last_name
from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.engine.cst_tools import filled
from autograd_explain.rewrite.engine.edits import each
from autograd_explain.rewrite.transforms.as_property import attributes_as_properties
from autograd_explain.rewrite.transforms.call_edits import call_behind, line_before, switched_before
from autograd_explain.rewrite.transforms.grad_mode import under_no_grad
from autograd_explain.rewrite.transforms.uncut import apply_patches, code_of, node_at, replacement

from .diagnose import Details
from .parametrization import parametrized


def _parametrized(site: Site[Details]) -> Edits | None:
    return parametrized(site.program, site.details.norm, site.details.asked)


def _unrecorded(site: Site[Details]) -> Edits | None:
    """Each statement that made a part under `torch.no_grad()`."""
    places = site.details.makers
    if not all(isinstance(site.program.statement_at(place), _SIMPLE) for place in places):
        return None  # the head of a loop: all that its body computes would go unrecorded
    return each(site.program, ((under_no_grad, place) for place in places))


def _running(site: Site[Details]) -> Edits | None:
    """A running statistic is kept without its graph; one that is written in place is written so."""
    if site.details.written is not None:
        return under_no_grad(site.program, site.details.written)
    return call_behind(site.program, site.place, "detach") if site.details.running else None


def _when_read(site: Site[Details]) -> Edits | None:
    """What a constructor computed (`self.prior = …`) becomes a property, which no copy holds."""
    read = index_of(site.program).reads(site.details.attribute)
    uses = [source.place(node.lineno, None, node) for source, node in read]
    made = site.place
    return attributes_as_properties(site.program, [made], uses) if made and uses else None


def _dropped(site: Site[Details]) -> Edits | None:
    if site.place is not None and site.place.function == "__init__":
        return None  # what reads it later would find nothing
    copied = site.details.copied or site.finding.place(What.FAILED)  # a library copies
    name = "" if copied is None else _name_at(site.finding, site.program, copied)
    attribute, whole = site.details.attribute, site.details.whole
    code = f"{name} = None\n"
    if whole:
        code = (
            f"for module in {whole}.modules():\n"
            f'    if getattr(module, "{attribute}", None) is not None:\n'
            f"        module.{attribute} = None\n"
        )
    return line_before(site.program, copied, code) if name else None


_ITEMS = re.compile(r"(\[[^\]]*\])+$")  #: `[0]` of `net.stats[0]`
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _name_at(finding: Finding[Details], program: Program, copied: Place) -> str:
    """The attribute to drop, as it is called before the statement of the copy; "" where that is not
    known: in a comprehension, and in a function for names of the notebook, which may mean another
    object in the next call.
    """
    source, node = program.source_at(copied), node_at(program, copied)
    around = source.around(node) if source is not None and node is not None else ()
    if any(isinstance(outer, _COMPREHENSIONS) for outer in around):
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
        isinstance(v, (ast.Tuple, ast.ListComp, ast.DictComp))
        or getattr(v, "elts", None)
        or getattr(v, "keys", None)
        for v in values
    )


def _values(site: Site[Details]) -> Edits | None:
    """`copy.deepcopy(h)` -> `h.detach().clone()`"""
    program, place = site.program, site.details.copied
    source, node = program.source_at(place), node_at(program, place)
    call = None if source is None or node is None else source.parents.get(node)
    if source is None or place is None or not isinstance(call, ast.Call) or not call.args:
        return None
    where = replace(place, span=source.span(call))
    code = filled("{x}.detach().clone()", x=code_of(program, place, call.args[0]))
    return apply_patches(replacement(program, where, code)) if call.args[0] is node else None


propose: Propose[Details] = by_table(
    Fix("detach", at_place(call_behind, "detach"), when=lambda d: d.looks_back),
    Fix("parametrization", _parametrized, when=lambda d: d.norm == "weight_norm"),
    Fix("other_start", _parametrized, when=lambda d: d.norm == "spectral_norm", changes=True),
    Fix("no_grad", _unrecorded),
    Fix("detach_running", _running, when=lambda d: not d.looks_back, changes=True),
    Fix("when_read", _when_read, when=lambda d: d.stored, changes=True),
    Fix(
        "emptied",
        lambda s: switched_before(s.program, s.details.copied, s.details.copied_text),
        when=lambda d: d.emptied,
        changes=True,
    ),
    Fix("drop", _dropped, when=lambda d: d.stored and not d.running),
    Fix("values", _values, when=lambda d: d.direct, changes=True),
)
