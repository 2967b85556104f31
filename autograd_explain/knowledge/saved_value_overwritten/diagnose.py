"""A tensor that backward needs was written in place after the forward pass saved it."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from autograd_explain.inspect.dataflow.syntax import taken_apart
from autograd_explain.inspect.facts.call_levels import Path, at_one_level
from autograd_explain.inspect.facts.overwrite import (
    Overwrite,
    culprit,
    events,
    find_overwrite,
    further_writes,
    is_parameter,
    read_operand,
    read_operands,
    savers_of_write,
    saving_lines,
)
from autograd_explain.inspect.facts.statements import SourceWrite, write_at, writes_in
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.live.names import shares_memory
from autograd_explain.inspect.live.shapes import shown_shape
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Place, label
from autograd_explain.program import last_name

from .handed_down import handed_down
from .holder_handed import holder_handed
from .inner_layer import inner_layer
from .layer_copies import LayerCall, saving_layers
from .other_owner import other_owner
from .untrained import untrained_call

PATTERNS = (
    "inplace-version-mismatch",
    "inplace-version-mismatch-leaf",
    "inplace-version-mismatch-anomaly",
    "inplace-version-mismatch-leaf-anomaly",
)

EXAMPLE = {
    "tensor": "gate",
    "saver": "gate = torch.sigmoid(x @ w)",
    "saver_place": "In[2]:2",
    "node": "SigmoidBackward0",
    "slot": "result",
    "operand": "",
    "parameter": "no",
    "savers": "1",
    "target": "gate",
    "write": "gate += 0.1",
    "write_place": "In[2]:4",
    "saved_version": "0",
    "current_version": "1",
    "failed": "loss.backward()",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    target: str  #: what the write calls the tensor
    operand: str  #: what the saving statement calls it, where it read it
    is_result: bool  #: what was saved is what the operation returned
    parameter: bool
    savers: int
    aliased: bool  #: written under another name
    write: Place | None  #: where it can wait for `failed`
    failed: Place | None
    further: tuple[Place, ...]  #: the writes to other tensors that backward needs
    #: the lines that led to each that saved an overwritten parameter
    readers: tuple[tuple[Place, ...], ...] = ()
    alone: Place | None = None  #: the only write in the program, where none is known to be guilty
    holder: str = ""  #: what keeps the tensor, or returned it, where this is the name that is told
    untrained: Place | None = None  #: the call of the module it belongs to, if nothing trains that
    tuples: Mapping[str, int] = field(default_factory=dict)  #: what the writes take elements of
    #: where each of several savers read it, and as what
    operands: tuple[tuple[Place, str], ...] = ()
    gains_graph: bool = False  #: it had no graph until it was written
    layers: tuple[LayerCall, ...] = ()  #: the modules' calls that saved an overwritten parameter
    owner: str = ""  #: where else the written tensor is kept: `self.state` of `s = self.state`


def diagnose(scene: Scene) -> Finding[Details] | None:
    found = find_overwrite(scene)
    if found is None or found.by_step:
        return None
    fact = culprit(scene, found)
    guilty, maker, place = found.guilty, found.maker, scene.place
    operand = read_operand(found, fact.names)
    details = _details(scene, found, operand, fact.names)
    if not fact.names:
        holder = holder_handed(scene, found)
        fact = replace(fact, names=(holder,) if holder else inner_layer(scene, found))
        details = replace(details, holder=next(iter(fact.names), ""))
    return Finding(
        cause="saved_value_overwritten",
        confidence=Confidence.PROVEN,
        facts={
            "tensor": fact.names[0] if fact.names else shown_shape(found.saved.tensor),
            "saver": maker.place.source if maker else found.saved.node.name,
            "saver_place": label(maker.place if maker else None),
            "node": found.saved.node.name,
            "slot": found.saved.name,
            "operand": operand,
            "parameter": "yes" if is_parameter(found) else "no",
            "savers": str(found.savers),
            "target": guilty.target if guilty else "",
            "write": guilty.place.source if guilty else "",
            "write_place": label(guilty.place if guilty else None),
            "saved_version": str(found.saved.saved_version),
            "current_version": str(found.saved.current_version),
            "failed": place.source if place else "",
        },
        tensors=(fact,),
        events=events(scene, found),
        variant=_variant(found),
        details=details,
    )


def _details(scene: Scene, found: Overwrite, operand: str, names: Sequence[str]) -> Details:
    guilty, failing = found.guilty, scene.path
    further = further_writes(scene, found)
    write: Place | None = None
    failed: Place | None = None
    if guilty is not None and failing:
        write, failed = at_one_level([guilty.path, failing])
    readers = saving_lines(scene) if is_parameter(found) else ()
    alone = _alone(scene, found) if guilty is None and not is_parameter(found) else None
    written, named = _written(scene, guilty, alone)
    return Details(
        target=_target(scene, guilty, names) or named,
        operand=operand,
        is_result=found.saved.name == "result" and not found.in_library,
        parameter=is_parameter(found),
        savers=savers_of_write(scene, found),
        aliased=_variant(found) == "alias",
        write=write,
        failed=failed,
        further=further,
        readers=readers,
        layers=_layers(scene, guilty, readers, write, failed),
        alone=alone,
        untrained=untrained_call(scene, found) if is_parameter(found) else None,
        operands=read_operands(scene, found, names),
        tuples=_tuples(scene, guilty, further),
        gains_graph=any(_gains_graph(scene, name) for name in names[:1]),
        owner=other_owner(scene, found.saved.tensor, written, named),
    )


def _layers(
    scene: Scene,
    guilty: TraceEvent | None,
    readers: Sequence[Path],
    write: Place | None,
    failed: Place | None,
) -> tuple[LayerCall, ...]:
    """The calls that are to compute with copies of the parameter which these lines saved: () where
    the write may rather come before them.  So it may where a library calls the function which
    writes and goes back from what that returns, and where the line that writes stands behind them
    and brings the parameter into a form, `w.copy_(normalize(w))`."""
    if guilty is None or write is None or failed is None:
        return ()
    spelled = write_at(scene.program, guilty.place)
    given = () if spelled is None else getattr(spelled.value, "args", ())
    read = {ast.unparse(n) for arg in given for n in ast.walk(arg)}
    formed = spelled is not None and spelled.target_text in read
    pairs = (at_one_level([guilty.path, path]) for path in readers if path)
    late = formed and all(line.line > call.line for line, call in pairs)
    return () if late or write.line_id == failed.line_id else saving_layers(scene, readers)


def _gains_graph(scene: Scene, name: str) -> bool:
    """Whether the only write that was recorded gave a tensor a graph that is no part of what
    failed, as a queue gets one by the keys that it stores: the next round would walk back there."""
    live = scene.names.named(name)
    node = None if live is None else live.grad_fn
    before = () if node is None else node.next_functions[:1]
    return before == ((None, 0),) and scene.graph.find(node) is None


def _tuples(
    scene: Scene, guilty: TraceEvent | None, further: tuple[Place, ...]
) -> Mapping[str, int]:
    """What of the writing lines is a tuple: no element of it can be given another tensor."""
    if guilty is None or "[" not in guilty.target:
        return {}
    return scene.inferred.tuples((guilty.place, *further))


def _target(scene: Scene, guilty: TraceEvent | None, names: Sequence[str]) -> str:
    """What the write calls the tensor; of a library's, what its caller does."""
    if guilty is None:
        return ""
    inside = guilty.inside is not None
    down = handed_down(scene.program, names, guilty.path) if inside else ""
    return down or _taken_apart(guilty) or guilty.target


def _written(
    scene: Scene, guilty: TraceEvent | None, alone: Place | None
) -> tuple[Place | None, str]:
    """The statement of the program's that wrote, or the only one that can have, and what it calls
    the tensor."""
    if guilty is not None:
        return (guilty.place if guilty.inside is None else None), guilty.target
    write = write_at(scene.program, alone)
    return alone, "" if write is None else ast.unparse(write.target)


def _taken_apart(write: TraceEvent) -> str:
    """`h` of `h[0].zero_()`, where that line takes a part of the tensor `h`; "" where it takes an
    element out of a list, which is no operation on a tensor."""
    parts = (m for m in write.via if m.place.line_id == write.place.line_id)
    bases = (m.operands[0] for m in parts if m.operands)
    return next((b for b in bases if b and write.target.startswith((f"{b}[", f"{b}."))), "")


def _alone(scene: Scene, overwrite: Overwrite) -> Place | None:
    """The one statement of the program that writes in place to what may be the tensor: to no number
    and to nothing that still has its name and is another tensor."""
    given = [(t, n.value) for _, n in scene.index.nodes(ast.Assign) for t in n.targets]
    pairs = [p for pair in given for p in taken_apart(*pair)]
    counted = {last_name(t) for t, v in pairs if isinstance(v, (ast.Constant, ast.List, ast.Dict))}
    found = [
        source.place(write.statement.lineno)
        for source, write in writes_in(scene.index)
        if last_name(write.target) not in counted and not _is_other(scene, overwrite, write)
    ]
    return found[0] if len(found) == 1 else None


def _is_other(scene: Scene, overwrite: Overwrite, write: SourceWrite) -> bool:
    live = scene.names.named(ast.unparse(write.target))
    return live is not None and not shares_memory(live, overwrite.saved.tensor)


def _variant(found: Overwrite) -> str:
    if found.guilty is None:
        return "write_unknown"
    if found.maker is None:
        return "saver_unknown"
    if found.alias:
        return "alias"
    if found.guilty.op.startswith("embedding"):
        return "max_norm"
    own = found.saved.name == "result" and not found.in_library
    return "own_output" if own else ""
