"""The torch.fx module whose call handed out values that its graph had written, and where the
program made it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from torch import fx

from autograd_explain.inspect.facts.silent_evidence import assignments
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import table_of
from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.analysis.effects import fresh
from autograd_explain.rewrite.engine.imports import torch_at
from autograd_explain.rewrite.engine.tree import statement_at
from autograd_explain.rewrite.transforms.spot import Spot


@dataclass(frozen=True)
class GraphMade:
    """`name` is what the call calls the module, `place` the statement that gives it that name;
    `layers` are the layers that write, where nothing else does; `graphs` are the attributes that
    hold its graphs, where it has several."""

    name: str
    place: Place | None
    layers: tuple[str, ...]
    graphs: tuple[str, ...]


def graph_made(scene: Scene, call: Place) -> GraphMade:
    """The module that the call at a place runs."""
    outputs, module = scene.incident.evidence["outputs"], scene.incident.evidence["module"]()
    name = _called(scene.program, call)
    made = [place for place, _ in assignments(scene.program, name)] if name else []
    kept = () if module is None else table_of(module).items()
    graphs = tuple(k for k, v in kept if isinstance(v, fx.Graph) and not k.startswith("_"))
    layers = tuple(dict.fromkeys(o.writer for o in outputs if o.layer))
    alone = all(o.layer for o in outputs)
    return GraphMade(name, made[-1] if made else None, layers if alone else (), graphs)


def _called(program: Program, place: Place) -> str:
    """`self.body` of `self.body(x)`, the one call of its line that gives what was written."""
    node = program.expression_at(place)
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def layers_not_inplace(program: Program, made: GraphMade | None) -> Edits | None:
    """`extractor.relu1.inplace = False` behind the statement that makes it."""
    if made is None or not made.layers:
        return None
    return Spot(program, made.place).behind("".join(_switched(made.name, p) for p in made.layers))


def _switched(name: str, path: str) -> str:
    plain = all(part.isidentifier() for part in path.split("."))
    layer = f"{name}.{path}" if plain else f'{name}.get_submodule("{path}")'
    return f"{layer}.inplace = False\n"


def copies_handed_out(program: Program, made: GraphMade | None) -> Edits | None:
    """Copies put into the graph, behind each node whose value it gives."""
    place = None if made is None else made.place
    torch, (tree, own) = torch_at(program, place), statement_at(program, place)
    if made is None or own is None or not torch:
        return None
    graph, output, node, copy = (fresh(tree, own, n) for n in ("graph", "output", "node", "copy"))
    graphs = ", ".join(f"{made.name}.{g}" for g in made.graphs)
    start = f"for {graph} in ({graphs}):\n" if graphs else f"{graph} = {made.name}.graph\n"
    lines = (
        f"{output} = {graph}.output_node()",
        f"for {node} in {output}.all_input_nodes:",
        f"    with {graph}.inserting_after({node}):",
        f"        {copy} = {graph}.call_function({torch}.clone, ({node},))",
        f"    {output}.replace_input_with({node}, {copy})",
    )
    inner = "".join(f"{'    ' if graphs else ''}{line}\n" for line in lines)
    return Spot(program, place).behind(f"{start}{inner}{made.name}.recompile()\n")
