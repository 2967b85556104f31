"""Cut the graph where a state is carried on, compute shared parts again, or keep the graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from typing import TypeGuard

from autograd_explain.arguments import positional_parameters
from autograd_explain.inspect.dataflow.syntax import is_none, taken_apart
from autograd_explain.inspect.facts.loop_carried import StateKind
from autograd_explain.model import Place, Role, What
from autograd_explain.program import Program, blocks, called_name
from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits, Fix, Proposal, Propose, Site, by_table, differing
from autograd_explain.rewrite.engine.edits import then
from autograd_explain.rewrite.transforms.as_property import attributes_as_properties
from autograd_explain.rewrite.transforms.call_edits import non_reentrant, switched_before
from autograd_explain.rewrite.transforms.clone import clone_before_write
from autograd_explain.rewrite.transforms.copied_object import argument_copied, deep_copied, given_to
from autograd_explain.rewrite.transforms.derivatives import keep_graph, with_create_graph
from autograd_explain.rewrite.transforms.detach import (
    bound_again,
    detach_after,
    detach_expression,
    detach_use,
    detached_at,
    detached_where_kept,
)
from autograd_explain.rewrite.transforms.keep_gradient import in_place_update
from autograd_explain.rewrite.transforms.recompute import (
    assigned_again,
    compute_all_in_loop,
    filled_first,
    recompute_before,
    repeat_inside,
)
from autograd_explain.rewrite.transforms.remove_memoization import computed_anew, not_kept

from .attribute import element_made_again, recompute_attribute
from .begin_anew import begun_anew, reset_anew, sum_anew
from .carried_state import Each
from .compared import compared
from .details import Details
from .reason import SHARED, Why


def _every_round_or_call(site: Site[Details]) -> Edits | None:
    """The old statements move into the loop before their use, or are repeated in its function."""
    use, old = site.details.use, site.details.old
    if use is None or not old or compared(site.program, old, use) is not None:
        return _in_closure(site)
    return compute_all_in_loop(site.program, old, use) or _in_closure(site)


def _compared(site: Site[Details]) -> Edits | None:
    """What the loop compares its own values with is cut off, the rest moves into the loop."""
    use = site.details.use
    found = compared(site.program, site.details.old, use)
    edits = detached_at(site.program, *found.values) if found is not None else None
    if found is None or use is None or not found.others:
        return edits
    return then(
        site.program, edits, lambda p, u, *o: compute_all_in_loop(p, o, u), use, *found.others
    )


def _detached_in_loop(site: Site[Details]) -> Edits | None:
    """`D(fake.detach())` in a loop that trains `D` alone, where a loss behind the loop goes back
    through `fake`, whose gradients begin anew there."""
    source, statement, name = site.source, site.statement, site.details.tensor
    around = () if source is None or statement is None else source.around(statement)
    loop = next((n for n in around if isinstance(n, (ast.For, ast.While))), None)
    if source is None or loop is None:
        return None
    block = next((b for b in blocks(source.parents.get(loop)) if loop in b), [loop])
    behind = [n for s in block[block.index(loop) + 1 :] for n in ast.walk(s)]
    calls = [called_name(n) for n in behind if isinstance(n, ast.Call)]
    if not {"zero_grad", "backward"} <= {*calls} or not any(_reads(n, name) for n in behind):
        return None
    reads = (n for s in loop.body for n in ast.walk(s) if _reads(n, name))
    return detached_at(site.program, *(site.of(n).place for n in reads))


def _reads(node: ast.AST, name: str) -> TypeGuard[ast.expr]:
    named = isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
    return named and ast.unparse(node) == name


def _constant(site: Site[Details], again: bool) -> Edits | None:
    """The loop gets the values of before it without their graphs."""
    found = site.details.constants
    if found is None or found.again is not again:
        return None
    if not again and (_detached_in_memory(site) or _every_round_or_call(site)):
        return None  # who can compute them anew may want to train through them
    code = "".join(f"{name} = {name}.detach()\n" for name in found.names)
    return site.at(found.before).before(code)


def _detached_in_memory(site: Site[Details]) -> Edits | None:
    """All that a memory of earlier rounds is given with a graph."""
    stored = site.details.stored
    places = dict.fromkeys((stored, *site.details.stored_beside))
    return detached_at(site.program, *places) or detached_at(site.program, stored)


def _when_read(site: Site[Details]) -> Edits | None:
    """What a constructor computed (`self.reg = …`) becomes a property."""
    made, uses = site.details.made, site.details.attribute_uses
    return attributes_as_properties(site.program, made, uses) if made and uses else None


def _before_each_use(site: Site[Details]) -> Edits | None:
    """… or gets a method that is called before each use."""
    made, uses = site.details.made, site.details.attribute_uses
    if not made or not uses or _when_read(site):
        return None
    fact = site.finding.tensor(Role.CULPRIT)
    names = () if fact is None else fact.names
    attributes = dict.fromkeys(n.rpartition(".")[2] for n in names if "." in n)
    plain = [n for n in attributes if n.isidentifier()]
    found = (recompute_attribute(site.program, made[0], uses[-1], n) for n in plain)
    elements = [n for n in attributes if n.endswith("]")]
    anew = (element_made_again(site.program, made[0], u, n) for n in elements for u in uses)
    return next((edits for edits in (*anew, *found) if edits), None)


def _in_closure(site: Site[Details]) -> Edits | None:
    """The statements behind the loss are repeated inside the function that goes backward."""
    old = site.details.old
    return repeat_inside(site.program, site.place, old) if old else None


def _new_read(site: Site[Details]) -> Edits | None:
    """The loss reads the value that was computed for it."""
    found = site.details.unread
    return None if found is None else site.at(*found.reads).replaced("{kept}", kept=found.name)


def _again(site: Site[Details]) -> Edits | None:
    use, old = site.details.use, site.details.old
    return recompute_before(site.program, use, old) if use is not None and old else None


def _kept(site: Site[Details]) -> Edits | None:
    """The graph is kept in the earlier backward, and in the failing call of `grad` where what that
    goes back from is read behind it (`nll + weight * g_loss`), or the function's caller has it."""
    edits = keep_graph(site.program, site.finding.place(What.FREED))
    return then(site.program, edits, keep_graph, site.place) or edits if _read_on(site) else edits


def _read_on(site: Site[Details]) -> bool:
    source, statement = site.source, site.statement
    if source is None or statement is None:
        return False
    calls = (n for n in ast.walk(statement) if isinstance(n, ast.Call))
    given = {ast.unparse(a) for c in calls if called_name(c) == "grad" for a in c.args[:1]}
    function = source.function_at(site.place)
    names = (n for n in ast.walk(function or source.tree) if isinstance(n, ast.Name))
    behind = {n.id for n in names if n.lineno > (statement.end_lineno or 0)}
    handed = () if function is None else positional_parameters(function)
    return not given.isdisjoint({*behind, *handed})


def _once(site: Site[Details]) -> Iterator[Proposal]:
    """One of the two calls is taken out, where it is a statement of its own."""
    before = site.details.before
    for spot in (site.at(before), site) if before is not None else ():
        if called_name(getattr(spot.statement, "value", None)) in _BACKWARD:
            yield from differing("one_backward", spot.removed())


def _detached_apart(site: Site[Details]) -> Iterator[Proposal]:
    """`d = D(g)` again before the second loss uses it, and `D(g.detach())` for the one of the two
    that does not train `g`."""
    use, maker = site.details.use, site.finding.place(What.CAUSE)
    if use is None or maker is None:
        return
    for place in site.details.second_ends:
        again = recompute_before(site.program, use, [maker], ending=place)
        yield from differing("recompute_detached", again)
    for place in site.details.first_ends:
        again = recompute_before(site.program, use, [maker])
        yield from differing("detach_recompute", then(site.program, again, detached_at, place))


def _carried(site: Site[Details]) -> Iterator[Proposal]:
    """The state goes on without its history; where it is cut differs with how it is kept."""
    name, maker = site.details.state, site.finding.place(What.CAUSE)
    held = maker if site.details.held else None
    written = None if held is None else in_place_update(site.program, held, reset=False)
    yield from differing("in_place", written)
    if written:
        return
    if (given := site.details.argument or site.details.filled) and maker is not None:
        # What is written there is to be trained.
        copied = argument_copied if site.details.argument else clone_before_write
        yield from differing("own_copy", copied(site.program, maker, given))
        return
    if site.details.state_kind is StateKind.LIST:
        code = "\n".join(f"{path}.clear()" for path in (name, *site.details.others))
        yield from differing("clear_list", site.at(site.details.last).behind(code))
        return
    if site.details.cache and name:
        yield from differing("clear_cache", site.behind("{cache} = None", cache=name))
    if site.details.lasts and not site.details.constant:
        return  # cut off, what it was computed from would not be trained any more
    loop = site.details.loop if site.details.bare else None
    handed = () if loop is None else loop.names
    anew = begun_anew(site.program, site.place, *((name,) if name else handed))
    if anew is None and maker is not None:
        anew = reset_anew(site.program, maker, site.details.tensor)
    yield from differing("begin_anew", anew)
    if (each := site.details.each) is not None and not site.details.inside:
        yield from differing("detach_state", _each_detached(site, each))
    for edits in _cuts(site):
        yield from differing("detach_state", edits)


def _each_detached(site: Site[Details], each: Each) -> Edits | None:
    """`for item in net: item.mem = item.mem.detach()` behind the failing line."""
    lines = [f"item.{name} = item.{name}.detach()" for name in each.attributes]
    if not each.all:
        first = f'if getattr(item, "{each.attributes[0]}", None) is not None:'
        lines = [first, *(f"    {line}" for line in lines)]
    code = "".join(f"    {line}\n" for line in lines)
    values = ".values()" if each.keyed else ""
    return site.behind(f"for item in {{each}}{values}:\n{code}", each=each.container)


def _filled_first(site: Site[Details]) -> Iterator[Proposal]:
    """What a library's object keeps is computed before the loop, where nothing trains it there."""
    program, cause, kept = site.program, site.finding.place(What.CAUSE), site.details.lasts
    if site.details.constant and (found := filled_first(program, cause, site.place, kept)):
        yield from differing("repair_filled_first", found[1], code=found[0])


def _cuts(site: Site[Details]) -> Iterator[Edits | None]:
    maker = site.finding.place(What.CAUSE)
    reader, kind = site.details.reader, site.details.state_kind
    # Behind the failing line inside all rounds are over.
    name = "" if site.details.inside else site.details.state
    several = kind is StateKind.TUPLE
    if name:
        again, others = bound_again(site.program, site.place, name), site.details.others
        if again is None:
            yield detach_after(site.program, site.place, name, *others, kind=kind.value)
        else:
            yield detach_expression(site.program, again, name, state=several)
    if (loop := site.details.loop) is not None:
        yield detach_after(site.program, loop.place, *loop.names, kind=loop.kind.value)
        return  # where the value is made, an inner loop may need its graph
    if reader is not None and not name:
        tensor = site.details.tensor
        none = _may_be_none(site.program, tensor)
        yield detach_use(site.program, reader, tensor, state=several, or_none=none)
    fact = site.finding.tensor(Role.CULPRIT)
    if fact is None or maker is None or site.finding.place(What.CREATED) is not None:
        return  # what only hands on what was made elsewhere is cut as a whole
    carried = site.details.tensor.rsplit(".", 1)[-1]
    kept = detached_where_kept(site.program, maker, carried)
    if kept is not None:
        yield kept
        return  # at the maker this round would lose its gradient, too
    for target in (n for n in fact.names if n.rsplit(".", 1)[-1] == carried):
        ways = [detach_expression, detach_use]
        apart = not site.details.late and _is_read_apart(site.program, maker, target)
        for way in reversed(ways) if apart else ways:
            yield way(site.program, maker, target, state=several)


def _is_read_apart(program: Program, maker: Place, target: str) -> bool:
    """Whether another function than the one that stores an attribute reads it: this round's value,
    whose graph is needed."""
    attribute = target.partition("[")[0].rpartition(".")[2]
    around = (source.function_around(node) for source, node in index_of(program).reads(attribute))
    return "." in target and any(
        f is not None and f.name not in (maker.function, "__init__") for f in around
    )


def _may_be_none(program: Program, name: str) -> bool:
    """Whether the program begins an attribute with None."""
    owner, _, attribute = name.rpartition(".")
    given = ((t, n.value) for _, n in index_of(program).nodes(ast.Assign) for t in n.targets)
    pairs = (p for pair in given for p in taken_apart(*pair)) if owner else ()
    return any(getattr(t, "attr", "") == attribute and is_none(v) for t, v in pairs)


def _is_computed_once(details: Details) -> bool:
    return details.why is Why.COMPUTED_ONCE


_BACKWARD = ("backward", "manual_backward")
_KEPT_LAST = (Why.SHARED_APART, Why.SAVED_READ)


def _is_shared(details: Details) -> bool:
    """Whether one graph serves two losses; of one loss, gone back from in two functions, every
    gradient would come twice."""
    return details.why in (Why.SAME_LOSS, Why.SHARED) and details.before is None


def _is_held(details: Details) -> bool:
    """Whether the program itself hands on what is told."""
    reached = details.each is not None or (bool(details.state) and "._" not in details.state)
    return details.why is Why.CARRIED and reached


def _options(site: Site[Details]) -> Iterator[Proposal]:
    return not_kept(site.program, site.details.options)


def _first(site: Site[Details]) -> Iterator[Proposal]:
    program, details = site.program, site.details
    if not _is_held(details):  # what the program itself hands on is not to be left out
        yield from _options(site)
    yield from _filled_first(site)
    anew = switched_before(program, site.finding.place(What.CAUSE), details.emptied)
    yield from differing("emptied", anew)
    yield from differing("own_copy", deep_copied(program, details.handed))
    first = given_to(program, details.shared_object, "copy.copy")
    yield from differing("copy_first", first, corrects=True)
    if details.why is Why.CARRIED and details.stored is None:
        yield from _carried(site)
    elif weight := detached_at(program, *details.weights):
        yield from differing("detach_weight", weight, corrects=True)
    elif details.why is Why.SHARED_STEPPED and not details.second_uses:
        yield from _detached_apart(site)


propose: Propose[Details] = by_table(
    Fix("non_reentrant", lambda s: non_reentrant(s.program, s.details.reentrant), changes=False),
    Fix("detach_second", lambda s: detached_at(s.program, *s.details.second_uses)),
    _first,
    Fix(
        "not_remembered",
        lambda s: computed_anew(s.program, s.finding.place(What.CAUSE)),
        when=lambda d: d.why is Why.REMEMBERED,
    ),
    Fix(
        "detach_kept",
        _detached_in_memory,
        when=lambda d: d.why is Why.CARRIED or (d.why is Why.COMPUTED_ONCE and not d.made),
    ),
    Fix("detach_first", _detached_in_loop, when=lambda d: _is_computed_once(d) and d.spares),
    Fix("detach_compared", _compared, when=_is_computed_once),
    Fix("detach_compared", partial(_constant, again=True), when=_is_computed_once),
    Fix("recompute_in_loop", _every_round_or_call, when=_is_computed_once),
    Fix("when_read", _when_read, when=_is_computed_once),
    Fix("recompute_in_loop", _before_each_use, when=_is_computed_once),
    Fix("detach_kept", partial(_constant, again=False), when=_is_computed_once),
    Fix("assign_again", lambda s: assigned_again(s.program, s.place)),
    Fix("read_unread", _new_read, when=lambda d: d.unread is not None),
    Fix("in_closure", _in_closure, when=lambda d: d.why is Why.CLOSURE),
    Fix("create_graph", lambda s: with_create_graph(s.program, s.details.derivatives)),
    _once,
    Fix(
        "sum_anew",
        lambda s: sum_anew(s.program, s.place, s.finding.place(What.FREED), s.details.tensor),
        when=lambda d: d.why in SHARED,
    ),
    # A step that may write what the shared part saved: keeping the graph comes last.
    Fix("recompute", _again, when=lambda d: _is_shared(d) and d.stepped),
    Fix(
        "retain_graph",
        _kept,
        when=lambda d: (_is_shared(d) and not d.stepped) or d.why is Why.BY_PART,
        changes=False,
    ),
    # `D(fake.detach())` in the first loss alone: the graph of `fake` is left to the second.
    Fix(
        "detach_first",
        lambda s: detached_at(s.program, *s.details.first_uses),
        when=lambda d: _is_shared(d) or d.why is Why.SHARED_APART,
    ),
    Fix(
        "recompute",
        _again,
        when=lambda d: (_is_shared(d) and not d.stepped) or d.why is Why.SHARED_STEPPED,
    ),
    Fix(
        "retain_graph",
        _kept,
        when=lambda d: d.trained or d.why in _KEPT_LAST or (_is_shared(d) and d.stepped),
        changes=False,
    ),
    _options,
    at=What.FAILED,
    changes=True,
)
