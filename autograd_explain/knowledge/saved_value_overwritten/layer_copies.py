"""Copies of its parameters for the one call of a module that saved them.

A module hands its parameters to torch's operations itself, so no operand of the user's can be a
copy: `net(x)` followed by `net.load_state_dict(saved)`, a layer whose weight is normalised before
each of its calls.  `torch.func.functional_call` lets it compute with other tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import libcst as cst
import torch

from autograd_explain.inspect.facts.call_levels import Path
from autograd_explain.inspect.facts.called_module import called_module
from autograd_explain.inspect.facts.expressions import expression_at
from autograd_explain.inspect.live.names import shares_memory
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.engine.cst_tools import dotted, walk
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.edits import each
from autograd_explain.rewrite.engine.imports import torch_at
from autograd_explain.rewrite.engine.tree import statement_at
from autograd_explain.rewrite.transforms.functional_layer import functional


@dataclass(frozen=True)
class LayerCall:
    """A line that calls a module, and what it calls it by (`self.fc`)."""

    place: Place
    called: str


def saving_layers(scene: Scene, paths: Sequence[Path]) -> tuple[LayerCall, ...]:
    """The calls of modules that saved what was overwritten of the parameters which these hold, at
    the end of these paths; () unless all that was overwritten was saved by such calls."""
    calls = [_layer_call(scene, path[-1]) for path in paths if path]
    found = {(c.place.line_id, c.called): c for c in calls if c is not None}
    return tuple(found.values()) if len(calls) == len(paths) and None not in calls else ()


def _layer_call(scene: Scene, place: Place) -> LayerCall | None:
    spot = expression_at(scene, place)
    callee = None if spot is None else spot.callable
    module = called_module(scene, callee)
    if module is None or callee is None or not _takes_copies(module):
        return None
    overwritten = [saved.tensor for saved in scene.graph.overwritten()]
    held = any(shares_memory(p, t) for p in module.parameters() for t in overwritten)
    return LayerCall(place, callee.text) if held else None


def _takes_copies(module: torch.nn.Module) -> bool:
    """Whether all of it reads its parameters anew: a recurrent layer of torch keeps a list of its
    own, and what was scripted knows no others."""
    kinds = (torch.nn.RNNBase, torch.jit.ScriptModule)
    return not any(is_a(part, kind) for part in module.modules() for kind in kinds)


def with_copies(program: Program, calls: Sequence[LayerCall]) -> Edits | None:
    """`self.fc(x)` -> `torch.func.functional_call(self.fc, {n: p.clone() …}, (x,))`, at each of
    these lines; None where one of them cannot be changed."""
    steps = [(partial(_changed, called=call.called), call.place) for call in calls]
    return each(program, steps) if steps else None


def _changed(program: Program, place: Place, called: str) -> Edits | None:
    (tree, statement), name = statement_at(program, place), torch_at(program, place)
    if statement is None or name is None:
        return None
    calls = [n for n in walk(statement) if isinstance(n, cst.Call) and dotted(n.func) == called]
    if not calls or any(arg.star for call in calls for arg in call.args):
        return None
    draft = Draft(tree)
    for call in calls:
        draft.change(call, partial(_with_copies_of, f"{name}.func.functional_call"))
    return draft.edits()


def _with_copies_of(function: str, call: cst.Call) -> cst.BaseExpression:
    copies = f"name: p.clone() for name, p in {dotted(call.func)}.named_parameters()"
    plain = call.with_changes(args=[a for a in call.args if a.keyword is None])
    made = functional(function, copies, plain)
    named = [cst.DictElement(_key(a.keyword), a.value) for a in call.args if a.keyword is not None]
    if not named or not isinstance(made, cst.Call):
        return made
    return made.with_changes(args=[*made.args, cst.Arg(cst.Dict(named))])


def _key(keyword: cst.Name) -> cst.SimpleString:
    return cst.SimpleString(f'"{keyword.value}"')
