"""Executes one operation on stand-ins and notes what it made and what it wrote."""

from __future__ import annotations

import ast
import operator
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from ...isolation.type_checks import class_attribute
from .budget import NotMade, function_root
from .definitions import Deferred
from .event_log import (
    ShadowEvent,
    ShadowWrite,
    sequence_number,
    storage_of,
    tensors_in,
    tracked,
    version_of,
)
from .libraries import may_have_graph, works_on_tensors
from .meta_results import substitute
from .native_calls import is_excessive
from .policy import behind, bound_to, is_twin_class, is_twin_function, is_twin_module
from .site import Site, as_seen
from .state import ShadowState
from .torch_names import CHANCE, operation, operator_name
from .unknown import UNKNOWN, ReadFloat, ReadInt, Unknown, read, words

SIMPLE = (int, float, str, bool, type(None), bytes)
_READS = (ReadFloat, ReadInt)
#: Operations worth a step though they make and write nothing.
_NOTABLE = words(
    """backward step zero_grad set_grad_enabled requires_grad_ retain_grad load_state_dict item
    tolist numpy detach_ eval train register_hook grad no_grad inference_mode enable_grad
    manual_seed seed"""
)
_MODULE_WRITERS = frozenset(("load_state_dict", "reset_parameters", "apply", "_apply", "zero_grad"))
#: Steps in which a library may make an object that lives: longer than that, the live one is taken.
_PURSE = 400
#: Packages whose functions do.
_COMPUTING = words("torch numpy math cmath random statistics einops opt_einsum _operator operator")
_MOVES = frozenset(("to", "cuda", "cpu", "xpu", "mps"))


_BACKWARD = words("backward manual_backward")
_OF_BACKWARD = words("retain_graph create_graph")


class Operations:
    """Calls, operators and item assignments of the twin."""

    def __init__(self, walk: ShadowState) -> None:
        self.walk = walk

    def perform(
        self,
        site: Site,
        function: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str = "",
    ) -> Any:
        """Calls a function for the user's call expression at `site`, if it may be called."""
        walk = self.walk
        if type(function) is Deferred:
            function = function.function()
        special = walk.special(function)
        if special is not None:
            return self.run(site, special, args, kwargs, name or _name_of(function))
        if not site.in_library:
            walk.given = site, (*args, *kwargs.values())
        if not site.in_library and walk.libraries.is_inside(function):
            called = walk.stays_out(site, function, args, kwargs)
            if called or walk.calls_back(site):
                if not called:
                    self.follow(site, function, args, kwargs)
                return walk.unknown_call(site, name or _name_of(function), args, kwargs)
            if name == "__init__":
                return self.begin(site, function, args, kwargs)
        if isinstance(function, type) and is_twin_class(function) and not site.in_library:
            return self.make(site, function, args, kwargs)
        if walk.is_kept(site) and self._makes_data(function, args, kwargs):
            # What is not known the binding of the name takes from the program.
            return self.attempt(site, function, args, kwargs, None)
        if _is_plain_sequence(function) and len(args) == 1 and not kwargs:
            return self.sequence(site, function, args[0])
        if is_twin_function(behind(function)) or is_twin_module(function):
            return self.enter(site, function, args, kwargs)
        if type(function) is not Unknown and not walk.policy.allows(function):
            function = walk.twin_of(function)
        if type(function) is Unknown or is_excessive(function, args, kwargs):
            return walk.unknown_call(site, name, args, kwargs)
        return self.run(site, function, args, kwargs, name or _name_of(function))

    def _makes_data(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a library's function is given nothing that a graph could come of:
        `Batch.from_data_list(graphs)`."""
        given = (getattr(function, "__self__", None), *args, *kwargs.values())
        own = is_twin_function(behind(function)) and self.walk.libraries.is_inside(function)
        return own and not may_have_graph(given)

    def of_unknown(
        self, site: Site, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A method of what is not known: a package's `accelerator.backward(loss)` goes backward."""
        loss = args[0] if name in _BACKWARD and len(args) == 1 else None
        if isinstance(loss, torch.Tensor) and loss.grad_fn is not None and loss.numel() == 1:
            given = {k: v for k, v in kwargs.items() if k in _OF_BACKWARD}
            return self.run(site, loss.backward, (), given, "backward")
        return self.walk.unknown_call(site, name, args, kwargs)

    def make(self, site: Site, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An object of the user's or of a library's class.

        Where a library takes long to make it, or meets what is not known, the live object stands
        for it that the program put at the same place; what an object of the user's lacks in the
        end is taken from there, too.
        """
        walk = self.walk
        live = walk.counterpart(site, kind)
        inside = walk.libraries.is_inside(kind)
        named = live is not None or isinstance(site.target, ast.Name)
        given = (*args, *kwargs.values())
        if inside and _is_trained(kind) and any(type(value) is Unknown for value in given):
            # It would be made of sizes that are not known; what holds it has the live one.
            return UNKNOWN if live is None else walk.adopter.adopt(live)
        named = named or not (_is_trained(kind) or works_on_tensors(given))  # settings
        walk.made.append(live)
        try:
            if not (inside and named):
                found = self.run(site, kind, args, kwargs, kind.__name__)
            else:
                own = live is None or works_on_tensors(given)
                found = self.attempt(site, kind, args, kwargs, None if own else _PURSE)
                if type(found) is Unknown and live is not None:
                    return walk.adopter.adopt(live)
        finally:
            walk.made.pop()
        if live is not None and type(found) is kind:
            walk.adopter.match(live, found)
        return found

    def follow(
        self, site: Site, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """A library's call in which the program's own function failed: it is followed to there, as
        far as a part of the budget goes."""
        walk = self.walk
        stack, loops, tries = walk.stack[:], walk.loops[:], walk.tries[:]
        try:
            with walk.budget.purse(walk.budget.left // 2):
                self.enter(site, function, args, kwargs)
        except NotMade:
            walk.stack[:], walk.loops[:], walk.tries[:] = stack, loops, tries

    def begin(
        self, site: Site, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A library's `__init__` for an object of the user's class."""
        walk, found = self.walk, getattr(function, "__self__", None)
        live = walk.made[-1] if walk.made else None
        if live is None or type(found).__name__ != type(live).__name__:
            return self.enter(site, function, args, kwargs)
        if type(self.attempt(site, function, args, kwargs, None)) is Unknown:
            walk.adopter.complete(live, found)
        return None

    def attempt(
        self,
        site: Site,
        function: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        steps: int | None,
    ) -> Any:
        """A call of a library's that is given up where it meets what is not known."""
        walk = self.walk
        if walk.making:
            return self.run(site, function, args, kwargs, _name_of(function))
        stack, loops, tries = walk.stack[:], walk.loops[:], walk.tries[:]
        walk.making = True
        try:
            with walk.budget.purse(steps):
                return self.run(site, function, args, kwargs, _name_of(function))
        except NotMade:
            walk.stack[:], walk.loops[:], walk.tries[:] = stack, loops, tries
            return UNKNOWN
        finally:
            walk.making = False

    def enter(
        self, site: Site, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A call of the user's own function: its inside is noted, not the call."""
        walk = self.walk
        walk.failure.arrive(site, (*args, *kwargs.values()))
        walk.budget.spend(2)
        walk.stack.append(site)
        try:
            return function(*args, **kwargs)
        except Exception as error:
            return walk.failed(site, error)
        finally:
            walk.stack.pop()

    def sequence(self, site: Site, modules: torch.nn.Sequential, value: Any) -> Any:
        """A Sequential, module by module: each is an operation of its own at the same place."""
        end = len(modules) - 1
        for i, module in enumerate(modules):
            part = site.part(first=i == 0, last=i == end)
            value = self.perform(part, module, (value,), {})
        return value

    def run(
        self,
        site: Site,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str,
    ) -> Any:
        """A call of torch or of Python's own."""
        walk = self.walk
        owner = bound_to(function)
        op = operation(function, name, kwargs)
        values = (*args, *kwargs.values())
        inputs = values if owner is None else (owner, *values)
        walk.failure.arrive(site, inputs, op, owner)
        if name in _MOVES and isinstance(owner, (torch.Tensor, torch.nn.Module)):
            move = walk.devices.move
            return self.execute(site, lambda: move(owner, name, args, kwargs), inputs, op, inputs)
        if not walk.budget.foresee(op, function, inputs):
            return UNKNOWN
        label = None
        if _computes(function):
            args, kwargs, label = walk.devices.arguments(args, kwargs)
        stepped = values[:1] if op == "step" else ()  # of `scaler.step(optimizer)`
        touched = (*inputs, *(t for o in (owner, *stepped) for t in _state_of(function, o, op)))
        result = self.execute(site, lambda: function(*args, **kwargs), inputs, op, touched)
        if label is not None:
            for tensor in tracked(result):
                if isinstance(tensor, torch.Tensor):
                    walk.devices.mark(tensor, label)
        return result

    def operate(
        self, site: Site, function: Callable[..., Any], operands: tuple[Any, ...], name: str
    ) -> Any:
        """An operator, an item or an attribute that computes."""
        self.walk.failure.arrive(site, operands, name)
        if not any(isinstance(o, torch.Tensor) for o in operands):
            return self.plain(site, function, operands, name)
        op = operator_name(name)
        if not self.walk.budget.foresee(name, function, operands):
            return UNKNOWN
        return self.execute(site, lambda: function(*operands), operands, op, operands[:1])

    def plain(
        self, site: Site, function: Callable[..., Any], operands: tuple[Any, ...], name: str
    ) -> Any:
        """An operator on numbers and Python objects; arrays and read numbers are followed."""
        walk = self.walk
        walk.budget.spend(1)
        walk.stack.append(site)
        first = sequence_number()
        try:
            result = function(*operands)
        except Exception as error:
            return walk.failed(site, error)
        finally:
            walk.stack.pop()
        walk.budget.produce(result)
        if type(result) in SIMPLE and not any(type(o) in _READS for o in operands):
            return result
        return self.note(site, name, operands, result, (first, sequence_number()), [])

    def execute(
        self,
        site: Site,
        call: Callable[[], Any],
        inputs: tuple[Any, ...],
        op: str,
        touched: tuple[Any, ...],
    ) -> Any:
        """Runs `call` and notes the step; `touched` are the values it may write to."""
        walk = self.walk
        tensors = tensors_in(touched)
        walk.budget.spend(8 if tensors else 1)
        versions = [version_of(t) for t in tensors]
        first, noted = sequence_number(), len(walk.trace.writes)
        started = time.thread_time() if tensors else 0.0
        walk.stack.append(site)
        try:
            result = call()
        except Exception as error:
            if not walk.devices.big:
                return walk.failed(site, error)
            result = substitute(op, inputs, error)
            if type(result) is Unknown:
                return walk.failed(site, error)
        finally:
            walk.stack.pop()
        walk.budget.produce(result)
        if tensors:
            walk.budget.measure(result, time.thread_time() - started)
        writes = self._written(tensors, versions, noted)
        nodes = first, sequence_number()
        return self.note(site, op, inputs, result, nodes, writes, tensors)

    def _written(
        self, tensors: list[torch.Tensor], versions: list[int], noted: int
    ) -> list[tuple[torch.Tensor, int, int]]:
        """Whose versions moved, less what inner steps have noted already."""
        moved: dict[int, tuple[torch.Tensor, int, int]] = {}
        for tensor, before in zip(tensors, versions, strict=True):
            after = version_of(tensor)
            if after != before:
                moved.setdefault(id(tensor), (tensor, before, after))
        writes = self.walk.trace.writes
        if not moved or noted == len(writes):
            return list(moved.values())
        inner = {storage_of(w.tensor) for w in writes[noted:]}
        return [m for m in moved.values() if storage_of(m[0]) not in inner]

    def note(
        self,
        site: Site,
        op: str,
        inputs: tuple[Any, ...],
        result: Any,
        nodes: tuple[int, int],
        writes: list[tuple[torch.Tensor, int, int]],
        touched: Sequence[torch.Tensor] = (),
    ) -> Any:
        """Adds a step where the operation is worth one, and gives the result back."""
        walk = self.walk
        outputs = tracked(result)
        if isinstance(result, torch.nn.Module) and not result._modules:
            outputs = tuple(result.parameters())  # a module was built, its parameters with it
        sources = tracked(inputs)
        number = type(result) in (int, float, bool) and (sources or op in CHANCE)
        made = outputs or writes or nodes[0] != nodes[1] or number
        chain, seen = as_seen(walk.stack, site)
        if seen is None or (not made and op not in _NOTABLE):
            return result
        step = ShadowEvent(
            order=len(walk.trace.steps),
            site=seen,
            chain=chain,
            op=op,
            inputs=sources,
            outputs=outputs,
            first=nodes[0],
            last=nodes[1],
            grad_mode=torch.is_grad_enabled(),
            loops=tuple(walk.loops),
            inside=site if site.in_library else None,
            ends_graph=_requires_grad((*inputs, *touched)) and not _requires_grad(outputs),
        )
        call, given = site, inputs
        if site.in_library:
            call = next(s for s in reversed(walk.stack) if not s.in_library)
            given = walk.given[1] if walk.given[0] is call else ()
        step.writes.extend(
            ShadowWrite(step, *moved, _name_in(call, given, moved[0])) for moved in writes
        )
        walk.trace.add(step)
        walk.devices.inherit([s for s in sources if isinstance(s, torch.Tensor)], outputs)
        return read(result, step) if number else result


def _computes(function: Any) -> bool:
    """Whether a function works with numbers: in place of one that is not known, any will do."""
    if isinstance(function, type) and is_twin_class(function):
        return False
    return function_root(function) in _COMPUTING


def _requires_grad(values: tuple[Any, ...]) -> bool:
    return any(t.requires_grad for t in tensors_in(values))


def _name_in(site: Site, inputs: tuple[Any, ...], written: torch.Tensor) -> str:
    """How a call writes the tensor that it changed: the receiver, an argument, `out=`."""
    if not isinstance(site.node, ast.Call):
        return ""
    at = next((i for i, value in enumerate(inputs) if value is written), None)
    # The module of `F.relu_(x)` is an operand of the source but no input.
    without = max(len(site.operands) - len(inputs), 0)
    return "" if at is None else site.text_of_operand(at + without)


def _state_of(function: Any, owner: Any, op: str) -> Iterator[torch.Tensor]:
    """The parameters and buffers that a module or an optimizer may write."""
    if isinstance(owner, torch.optim.Optimizer):
        for group in getattr(owner, "param_groups", ()):  # not yet in its constructor
            yield from group["params"]
        return
    module = function if isinstance(function, torch.nn.Module) else None
    if module is None and isinstance(owner, torch.nn.Module) and op in _MODULE_WRITERS:
        module = owner
    if module is not None:
        yield from module.parameters()
        yield from module.buffers()


def _is_trained(kind: type) -> bool:
    return issubclass(kind, (torch.nn.Module, torch.optim.Optimizer))


def _name_of(function: Any) -> str:
    return str(getattr(function, "__name__", "") or type(function).__name__)


IN_PLACE = {
    "iadd": "add", "isub": "sub", "imul": "mul", "itruediv": "truediv", "ifloordiv": "floordiv",
    "imod": "mod", "ipow": "pow", "imatmul": "matmul", "iand": "and_", "ior": "or_",
    "ixor": "xor", "ilshift": "lshift", "irshift": "rshift",
}  # fmt: skip
OPERATORS: dict[str, Callable[..., Any]] = {
    name: getattr(operator, name)
    for name in (
        *IN_PLACE, *IN_PLACE.values(), "eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "invert",
    )
}  # fmt: skip


def _is_plain_sequence(function: Any) -> bool:
    """An nn.Sequential, or an object of a subclass that calls its modules one after the other as
    torch's own does: there is no line of the program's in between."""
    if type(function) is torch.nn.Sequential:
        return True
    if not isinstance(function, torch.nn.Sequential):
        return False
    own = class_attribute(type(function), "forward") is vars(torch.nn.Sequential)["forward"]
    called = class_attribute(type(function), "__call__") is vars(torch.nn.Module)["__call__"]
    return own and called and not function._forward_hooks and not function._forward_pre_hooks
