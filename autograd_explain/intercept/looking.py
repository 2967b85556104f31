"""Looking at living tensors and graphs between two cells: what `%autograd_inspect` and
`%autograd_graph` are asked, and what the session knows about it.

Nothing is computed in the user's session, nothing changed, and nothing of it is kept.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Protocol

from ..incident import Incident
from ..model import Kind, Place
from ..program_index import index_of
from .guard import guarded

if TYPE_CHECKING:
    import torch

    from ..inspect.history import History
    from ..inspect.live.graph import Graph, GraphNode, SavedTensor
    from ..inspect.live.names import Names
    from ..render.look import GraphPicture, TensorTable
    from ..settings import AutogradExplain
    from .apart import Apart
    from .cells import Cells

GRAPH_OPTIONS = ("--around", "--distance")
_MOST_COMPLETED = 200
_OPEN, _CLOSED, _QUOTES = "([{", ")]}", "'\""


class Session(Protocol):
    """What is asked of `session.Session`."""

    shell: Any
    cells: Cells
    settings: AutogradExplain
    recording: Any
    apart: Apart


class Unclear(ValueError):
    """What was asked for is not there, or is not one thing; the text says why."""


@dataclass(frozen=True)
class GraphRequest:
    """A tensor whose graph is asked for, and whose neighbourhood in it (`""`: all of it)."""

    name: str
    around: str = ""
    distance: int | None = None


def words_of(line: str) -> list[str]:
    """The expressions of a line: blanks inside brackets and quotes do not part them."""
    found, depth, quote, fresh = [""], 0, "", True
    for character in line:
        if not quote and not depth and character.isspace():
            fresh = True
            continue
        if fresh and found[-1]:
            found.append("")
        fresh = False
        found[-1] += character
        if quote:
            quote = "" if character == quote else quote
        elif character in _QUOTES:
            quote = character
        else:
            depth += (character in _OPEN) - (character in _CLOSED)
    return [word for word in found if word]


def graph_request(line: str) -> GraphRequest:
    """`loss --around x --distance 3`; raises Unclear."""
    names: list[str] = []
    given: dict[str, str] = {}
    words = iter(words_of(line))
    for word in words:
        option, equals, value = word.partition("=")
        if option in GRAPH_OPTIONS:
            given[option] = value if equals else next(words, "")
            if not given[option]:
                raise Unclear(f"{option} wants a value")
        elif word.startswith("--"):
            raise Unclear(f"no such option: {word}; there are {' and '.join(GRAPH_OPTIONS)}")
        else:
            names.append(word)
    if len(names) != 1:
        raise Unclear(
            f"the graph of one tensor at a time, not of {len(names)}: %autograd_graph loss"
            if names
            else "Which tensor? For example: %autograd_graph loss"
        )
    distance = given.get("--distance")
    if distance is not None and not (distance.isdecimal() and int(distance)):
        raise Unclear(f"--distance must be a positive number of nodes, not {distance!r}")
    if distance is not None and "--around" not in given:
        raise Unclear("--distance is that from the tensor of --around")
    return GraphRequest(
        names[0], given.get("--around", ""), None if distance is None else int(distance)
    )


def graph_picture(session: Session, line: str) -> GraphPicture:
    """The graph that a line asks for; raises Unclear."""
    from ..inspect.live.graph_report import NEAR, NotInGraph, graph_of, graph_report
    from ..render.look import GraphPicture

    asked = graph_request(line)
    with _undisturbed(session) as (namespace, names):
        graph = graph_of(_with_graph(asked.name, namespace, names))
        around = None
        if asked.around:
            near = asked.distance or NEAR
            around = asked.around, _with_graph(asked.around, namespace, names), near
        past = _Past(session, graph, _made_in(session, asked.name, graph))
        try:
            report = graph_report(asked.name, graph, names, past.maker, past.writers, around)
        except NotInGraph:
            raise Unclear(f"{asked.around} is not in the graph of {asked.name}") from None
        known = past.history is not None and any(row.place for row in report.rows)
        certainty = past.history.certainty if known and past.history is not None else None
        return GraphPicture(report, certainty, session.settings.language)


def tensor_table(session: Session, line: str) -> TensorTable:
    """What a line's tensors are to autograd; raises Unclear."""
    from ..inspect.live.graph import Graph
    from ..inspect.live.memory import memories
    from ..inspect.live.tensor_report import look
    from ..render.look import TensorTable

    asked = list(dict.fromkeys(words_of(line)))
    if not asked:
        raise Unclear("Which tensor? For example: %autograd_inspect x y")
    with _undisturbed(session) as (namespace, names):
        tensors = [_tensor_at(name, namespace) for name in asked]
        past = _Past(session, Graph([]))
        return TensorTable(
            tuple(look(*each, names) for each in zip(asked, tensors, strict=True)),
            memories(tensors, names, past.same_counter),
            session.settings.language,
        )


def names_of_tensors(session: Session) -> list[str]:
    """What can be asked about, for completion."""
    with _undisturbed(session) as (_, names):
        return [named.name for named in names.tensors[:_MOST_COMPLETED]]


def _made_in(session: Session, name: str, graph: Graph) -> int | None:
    """The cell that bound a tensor last, to which most of reading the program may go; None where
    what came after it is asked about as well."""
    if next(graph.overwritten(), None) is not None:
        return None
    names = {node.id for node in ast.walk(ast.parse(name)) if isinstance(node, ast.Name)}
    runs = index_of(session.cells.program()).runs
    return next((run.cell for run in reversed(runs) if names & run.bound), None)


class _Past:
    """What made the nodes of a graph: observed where all of them were, else inferred."""

    def __init__(self, session: Session, graph: Graph, cell: int | None = None) -> None:
        self.history: History | None = None
        self._inferred: Any = None
        with guarded("graph"):
            self.history = self._history(session, graph, cell)

    def _history(self, session: Session, graph: Graph, cell: int | None) -> History:
        from ..inspect.shadow import InferredHistory

        program, shell = session.cells.program(), session.shell
        recording = session.recording
        patched = session.apart.patched
        incident = Incident(Kind.NOTE, "", program, shell.user_ns, cell=cell, patched=patched)
        self._inferred = InferredHistory(program, incident, graph)
        if recording is not None and recording.saw(node.sequence for node in graph.inner):
            observed: History = recording.history(program)
            return observed
        history: History = self._inferred
        return history

    def maker(self, node: GraphNode) -> Place | None:
        with guarded("graph"):
            moment = None if self.history is None else self.history.maker(node)
            return None if moment is None else moment.place
        return None

    def writers(self, saved: SavedTensor) -> tuple[Place, ...]:
        with guarded("graph"):
            found = () if self.history is None else self.history.writes(saved)
            return tuple(moment.place for moment in found)
        return ()

    def same_counter(self, one: torch.Tensor, other: torch.Tensor) -> bool | None:
        with guarded("inspect"):
            same: bool | None = self._inferred.same_counter(one, other)
            return same
        return None


@contextmanager
def _undisturbed(session: Session) -> Iterator[tuple[dict[str, Any], Names]]:
    """The namespace and its tensors; function modes and what the session has put in the place of
    torch's functions have no part in it."""
    import torch

    from ..inspect.live.names import Names

    namespace: dict[str, Any] = session.shell.user_ns
    with session.apart, torch._C.DisableTorchFunction():
        yield namespace, Names(namespace)


def _with_graph(expression: str, namespace: dict[str, Any], names: Names) -> torch.Tensor:
    """A tensor whose node can be asked for without changing it."""
    from ..inspect.live.tensor_report import may_ask

    tensor = _tensor_at(expression, namespace)
    if may_ask(tensor):
        return tensor
    base = "" if tensor._base is None else next(iter(names.of(tensor._base)), "")
    instead = f"; ask for its base, {base}" if base else ""
    raise Unclear(
        f"{expression} is a view that was written in place: reading its graph rebuilds it{instead}"
    )


def _tensor_at(expression: str, namespace: dict[str, Any]) -> torch.Tensor:
    from ..inspect.live.tensor_report import tensor_at

    try:
        return tensor_at(expression, namespace)
    except ValueError as error:
        near = get_close_matches(expression, [n for n in namespace if not n.startswith("_")], 1)
        more = f"; did you mean {near[0]}?" if near and expression not in namespace else ""
        raise Unclear(f"{error}{more}") from None
