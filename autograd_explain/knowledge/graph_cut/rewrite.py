"""Each kind of cut has its own repair; where torch defines no gradient, the value before it."""

import ast
from dataclasses import replace

from autograd_explain.inspect.dataflow import CutKind
from autograd_explain.model import Place
from autograd_explain.program import Program, called_name
from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import (
    asked_for_gradient,
    objects_called,
    read_instead,
    wrapped_instead,
)
from autograd_explain.rewrite.transforms.copied_object import deep_copied
from autograd_explain.rewrite.transforms.derivatives import derivatives_from, with_create_graph
from autograd_explain.rewrite.transforms.grad_mode import out_of_block
from autograd_explain.rewrite.transforms.reconnect import reconnected
from autograd_explain.rewrite.transforms.uncut import is_list, joined_at
from autograd_explain.rewrite.transforms.undone import undone_behind

from .diagnose import Details, Missing
from .thaw import computed_in_turn, thawed_before, thawed_in_turn


def _uncut(site: Site[Details]) -> Edits | None:
    """Leave out what cut, and what would cut once more behind it."""
    program, cuts, later = site.program, site.details.cuts, site.details.later
    if any(kind not in _PASSING for kind, _ in later):
        # What is known of an array is known of all its way.
        calls = [called_name(program.expression_at(place)) for place in cuts]
        return reconnected(program, cuts) if {*calls} == {"numpy"} else None
    way = [*cuts, *(place for _, place in later if place is not None)]
    return reconnected(program, way) or reconnected(program, way, whole=True)


_PASSING = (CutKind.COPY, CutKind.NUMPY, CutKind.NUMBER, CutKind.DETACH)


def _without_copy(program: Program, place: Place) -> Edits | None:
    given = getattr(program.expression_at(place), "args", None)
    return joined_at(program, place, is_list(program, given[0])) if given else None


def _value_before(site: Site[Details]) -> Edits | None:
    """The value from before the operation without gradient; `pred.float()` becomes `logits` as a
    whole: the cast only undid the integers."""
    use, text = site.at(site.details.use), site.details.instead
    method, call, *_ = (*use.around, None, None)
    cast = isinstance(method, ast.Attribute) and method.attr in ("float", "double")
    if cast and isinstance(call, ast.Call) and not call.args and not call.keywords:
        use = use.of(call)
    edits = use.replaced("{text}", text=text)
    return edits if edits and _fits_loss(site) else None


def _cross_entropy(site: Site[Details]) -> Edits | None:
    """An accuracy as objective: the cross entropy of the same scores and labels."""
    details = site.details
    loss = "{torch.nn.functional}.cross_entropy({scores}, {labels})"
    given = {"scores": details.scores, "labels": details.labels}
    return site.at(details.objective).replaced(loss, **given)


#: Losses that take scores per class together with class numbers.
_TAKES_SCORES = ("cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss", "multi_margin_loss")


def _fits_loss(site: Site[Details]) -> bool:
    """A comparison or a cast keeps the shape; an argmax does not, and few losses take scores."""
    program = site.program
    if site.details.kind is CutKind.COMPARE or called_name(site.node) in _CASTS:
        return True
    statement = program.statement_at(site.details.use)
    called = {called_name(n) for n in ast.walk(statement)} if statement is not None else set()
    made = {
        ast.unparse(t)
        for _, n in index_of(program).nodes(ast.Assign)
        if called_name(n.value) in _TAKES_SCORES
        for t in n.targets
    }
    return bool(called.intersection(_TAKES_SCORES) or called.intersection(made))


_CASTS = ("long", "int", "bool", "byte", "short", "char", "to", "type")


def _called_themselves(site: Site[Details]) -> Edits | None:
    """Each object that the value is asked of, what is told first."""
    told, gathered = site.place, site.details.gathered
    others = (p for p in gathered if p.line_id != told.line_id)
    return objects_called(site.program, (told, *others))


def _rsample(site: Site[Details]) -> Edits | None:
    """Only distributions with a reparametrised draw have `rsample`."""
    from torch import distributions

    made = index_of(site.program).calls(*distributions.__all__, of="torch")
    drawn = [getattr(distributions, called_name(call)) for _, call in made]
    if not drawn or not all(getattr(kind, "has_rsample", False) for kind in drawn):
        return None
    return site.replaced("{owner}.rsample{arguments}")


def _thawed_part(site: Site[Details]) -> Edits | None:
    """The part that is to learn gets its flags back behind the statement that froze everything."""
    calls = (f"{part}.requires_grad_(True)" for part in site.details.parts)
    return site.at(site.details.freeze).behind("\n".join(calls))


def _thawed(site: Site[Details]) -> Edits | None:
    """Where the helper that froze it is called for the other's turn, or where its own begins."""
    program, details = site.program, site.details
    in_turn = thawed_in_turn(program, details.setter or site.place)
    return in_turn or thawed_before(program, site.place, details.turn)


def _is_frozen_but_part(details: Details) -> bool:
    return details.missing is Missing.FROZEN and bool(details.freeze and details.parts)


def _is_frozen_whole(details: Details) -> bool:
    return details.missing is Missing.FROZEN and not _is_frozen_but_part(details)


_WITHOUT_GRADIENT = (CutKind.COMPARE, CutKind.INTEGER)

#: What learns then besides may differ from what was meant.
_UNFROZEN: tuple[Fix[Details], ...] = (
    Fix("computed_in_turn", lambda s: computed_in_turn(s.program, s.place, s.details.then_read)),
    Fix("trainable", lambda s: s.given(*s.details.trainable) if s.details.trainable else None),
    Fix("undo", lambda s: undone_behind(s.program, s.place, s.details.opposite)),
    Fix("unfreeze", _thawed_part, when=_is_frozen_but_part),
    Fix("thaw", _thawed, when=_is_frozen_whole),
    Fix("copy_module", at_place(deep_copied), when=lambda d: d.missing is Missing.SHARED),
)

propose: Propose[Details] = by_table(
    Fix("use_dead", lambda s: read_instead(s.program, s.details.dead), changes=True),
    Fix("uncut", _uncut, when=lambda d: d.kind in (CutKind.NUMBER, CutKind.DETACH, CutKind.NUMPY)),
    Fix("no_copy", at_place(_without_copy), when=lambda d: d.kind is CutKind.COPY),
    Fix("value_before", _value_before, when=lambda d: d.kind in _WITHOUT_GRADIENT, changes=True),
    Fix("undecorated", lambda s: wrapped_instead(s.program, s.details.undecorated), changes=True),
    Fix("repair_called_itself", _called_themselves, when=lambda d: d.by_library, changes=True),
    Fix("cross_entropy", _cross_entropy, when=lambda d: d.kind is CutKind.INTEGER, changes=True),
    Fix(
        "create_graph",
        lambda s: with_create_graph(
            s.program,
            s.details.left or (*derivatives_from(s.program, s.place), *s.details.derivatives),
        ),
        when=lambda d: d.kind is CutKind.GRADIENT or d.left != (),
    ),
    Fix("rsample", _rsample, when=lambda d: d.kind is CutKind.SAMPLE, changes=True),
    Fix("requires_grad", at_place(asked_for_gradient), when=lambda d: d.missing is Missing.FLAG),
    Fix("outside", lambda s: out_of_block(s.program, s.place, s.details.in_block)),
    *(replace(fix, intended_difference=True) for fix in _UNFROZEN),
)
