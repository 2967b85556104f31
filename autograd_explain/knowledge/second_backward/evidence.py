"""What is known of a second backward: looked up once, in this order, for all later decisions."""

from __future__ import annotations

from dataclasses import dataclass

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.failing_loops import FailingLoops, failing_loops
from autograd_explain.inspect.facts.loop_carried import LoopCarried
from autograd_explain.inspect.facts.memoization import Memoized, remembered
from autograd_explain.inspect.facts.torch_call import backward_roots
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Place

from .calls import Calls, calls_of
from .derivative import Derivative, derivative_in_loss
from .freed_part import FreedPart, earlier_backwards
from .kept_by_library import carried_by_library
from .part_by_part import is_gone_through
from .step_effect import Step, effect_of


@dataclass(frozen=True, eq=False)
class Evidence:
    """`part` is what the first backward freed; `steps` are the optimizers' steps since, `memory`
    is what hands the old value out again."""

    part: FreedPart
    roots: tuple[ExprAt, ...]  #: what the failing backward was called on
    calls: Calls
    steps: tuple[Step, ...]
    memory: Memoized | None
    held: LoopCarried | None  #: what objects of packages hold for the next round
    by_part: bool  #: a loop goes back from one part of the old value after the other
    derivative: Derivative | None  #: the earlier backward took it, and a loss is computed from it
    loops: FailingLoops
    failed: tuple[Place, ...]  #: the lines at which the second backward stands, outermost first
    trace: tuple[TraceEvent, ...]  #: what the program did, oldest first
    freeing: tuple[TraceEvent, ...]  #: the earlier calls that keep no graph
    loss: TraceEvent | None  #: what made the loss that failed
    cell: int | None  #: the failing one
    runs: tuple[int, ...]  #: of the failing cell's text
    in_optimizer: bool  #: the second backward stands in a function that an optimizer's step called

    @property
    def stepped(self) -> Step | None:
        """The step that matters most: one that writes the part, or may."""
        unsafe = (s for s in self.steps if s.writes is not False)
        return next(unsafe, None) or next(iter(self.steps), None)


def gather(scene: Scene, part: FreedPart) -> Evidence:
    """What is known of the second backward through this part."""
    in_optimizer, calls = _in_optimizer(scene), calls_of(scene, part)
    roots = backward_roots(scene)
    cell = scene.program.cell(scene.incident.cell)
    runs = () if cell is None else scene.index.runs_of(cell.text)
    made = () if part.maker is None else part.maker.path
    return Evidence(
        part=part,
        roots=tuple(roots),
        calls=calls,
        steps=tuple(effect_of(scene, part, *step) for step in calls.steps),
        by_part=is_gone_through(scene, part, roots),
        derivative=derivative_in_loss(scene, part, calls, roots),
        memory=remembered(scene.program, made, scene.path),
        held=carried_by_library(scene, part),
        loops=failing_loops(scene),
        failed=scene.path,
        trace=scene.history.steps,
        freeing=earlier_backwards(scene),
        loss=scene.history.creation(scene.roots[0]) if scene.roots else None,
        cell=None if cell is None else cell.cell,
        runs=tuple(run.cell for run in runs if run.cell is not None),
        in_optimizer=in_optimizer,
    )


def _in_optimizer(scene: Scene) -> bool:
    frames, own = scene.incident.frames, scene.incident.user_frames
    inner = max((i for i, f in enumerate(frames) if f in own), default=0)
    return any("torch/optim/" in f.filename.replace("\\", "/") for f in frames[:inner])
