"""A watched program does what it does without us: results, errors, warnings, what it can look at.

Every program leaves what it found out in `seen`.  It runs twice, plain and with each of its cells
watched, and must have seen the same.
"""

from __future__ import annotations

import gc
import multiprocessing
import textwrap
import warnings
import weakref
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
import torch
from notebook import captured, shell_with_extension
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from autograd_explain.program import Program, Source
from autograd_explain.record import Recording
from autograd_explain.record.detect import holders
from autograd_explain.record.observe.call_sites import CallSites

SUBCLASS = """
    import torch
    from torch import nn
    from torch.testing._internal.two_tensor import TwoTensor
    m = nn.Linear(2, 2)
    m.weight = nn.Parameter(TwoTensor(torch.ones(2, 2), torch.zeros(2, 2)))
    m(torch.ones(1, 2)).sum().backward()
    m.zero_grad()
"""
CONVERTED = """
    import torch
    from torch import nn
    torch.__future__.set_swap_module_params_on_conversion(True)
    m = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    opt = torch.optim.SGD(m.parameters(), lr=0.1)
    for _ in range(2):
        m(torch.ones(1, 2)).sum().backward()
        opt.step()
        opt.zero_grad()
    state = m.state_dict()
"""
#: Each a program by its cells.
PROGRAMS: dict[str, tuple[str, ...]] = {
    "parameters of a wrapper subclass are converted": (
        SUBCLASS,
        "m.double()\nseen = [m.weight.dtype, type(m.weight).__name__]",
    ),
    "parameters are swapped on conversion": (
        CONVERTED,
        "m.double()\nseen = [p.dtype for p in m.parameters()]",
    ),
    "parameters are swapped as a state is loaded": (
        CONVERTED,
        "m.load_state_dict(state)\nseen = [float(p.detach().sum()) for p in m.parameters()]",
    ),
    "an optimizer with an empty group": (
        """
        import torch
        p = torch.ones(2, requires_grad=True)
        opt = torch.optim.SGD([{"params": []}, {"params": [p]}], lr=0.1)
        for _ in range(2):
            opt.zero_grad()
            p.square().sum().backward()
            opt.step()
        seen = p.tolist()
        """,
    ),
    "one element out of many goes to numpy": (
        "import torch\nseen = torch.arange(8.)[::4][:1].numpy().tolist()",
    ),
    "numbers go to another device": (
        """
        import torch
        w = torch.ones(3, requires_grad=True)
        v = [w.sum().item(), w.mean().item(), *w.exp().tolist()]
        made = [torch.tensor(v, device="meta"), torch.as_tensor(v[:1], device="meta")]
        seen = [t.shape for t in made]
        """,
    ),
    "a write through an alias is traced": (
        """
        import torch
        from torch.fx.experimental.proxy_tensor import make_fx
        def f(x):
            y = x * 2
            y.data[0] = 2.0
            return y
        seen = str(make_fx(f)(torch.ones(3)).graph)
        """,
    ),
    "warnings are shown once per line": (
        """
        import warnings
        import torch
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        seen = []
        def show(message, category, filename, line, *rest):
            seen.append((str(message)[:30], category.__name__, filename, line))
        warnings.showwarning = show
        warnings.simplefilter("default")
        for i in range(3):
            y.grad
            warnings.warn("mine")
        y.grad
        """,
        "y.grad; y.grad",
    ),
    "warnings are shown once": (
        """
        import warnings
        import torch
        y = torch.ones(2, requires_grad=True) * 2
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("once")
            y.grad
            y.grad
        seen = [(str(w.message)[:30], w.filename, w.lineno) for w in caught]
        """,
    ),
    "warnings are recorded": (
        """
        import warnings
        import torch
        y = torch.ones(2, requires_grad=True) * 2
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for i in range(2):
                y.grad
                torch.tensor(y.detach())
        seen = [(str(w.message)[:30], w.filename, w.lineno) for w in caught]
        """,
    ),
    "hooks have the numbers they had": (
        """
        import torch
        from torch.utils.hooks import RemovableHandle
        RemovableHandle.next_id = 0
        x = torch.ones(2, requires_grad=True)
        """,
        "h = x.register_hook(lambda g: g)\n"
        "opt = torch.optim.SGD([x], lr=0.1)\nopt.register_step_pre_hook(lambda *_: None)",
        "m = torch.nn.Linear(1, 1)\nm.register_forward_hook(lambda *_: None)\n"
        "seen = [list(x._backward_hooks), list(opt._optimizer_step_pre_hooks), "
        "list(m._forward_hooks), RemovableHandle.next_id]",
    ),
    "a mode is entered in one cell and left in another": (
        """
        import torch
        from torch.overrides import TorchFunctionMode
        seen = []
        class Names(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                seen.append(func.__name__)
                return func(*args, **(kwargs or {}))
        mode = Names()
        mode.__enter__()
        torch.ones(1)
        """,
        "torch.ones(2)\nmode.__exit__(None, None, None)\ntorch.ones(3)",
        "torch.zeros(3)\nseen.append(torch._C._len_torch_function_stack() < 2)",
    ),
    "a default device is set in one cell and reset in another": (
        "import torch\ntorch.set_default_device('meta')\nseen = [str(torch.ones(1).device)]",
        "seen.append(str(torch.ones(1).device))\ntorch.set_default_device(None)\n"
        "seen.append(str(torch.ones(1).device))",
        "seen.append(str(torch.ones(1).device))\nwith torch.device('meta'):\n"
        "    seen.append(str(torch.ones(1).device))",
    ),
    "the order of a tensor's dimensions is asked for": (
        """
        import torch
        try:
            seen = torch.empty_strided((2, 2), (1, 1)).dim_order(ambiguity_check=True)
        except RuntimeError as error:
            seen = str(error)
        """,
    ),
    "a function keeps what its locals() gave": (
        """
        import torch
        def train(lr=0.1):
            given = locals()
            w = torch.ones(3, requires_grad=True)
            h = w * 2
            h += 1
            h.exp().sum().backward()
            return given
        seen = train()
        """,
    ),
    "swap_tensors imported by name": (
        "import torch\nfrom torch.utils import swap_tensors\n"
        "a, b = torch.ones(2, requires_grad=True), torch.zeros(3, requires_grad=True)",
        "swap_tensors(a, b)\nseen = [a.shape, b.shape]",
    ),
}


@pytest.fixture(autouse=True)
def as_before() -> Any:
    """What programs switch on in torch is switched off again."""
    shown = warnings.showwarning
    with warnings.catch_warnings():
        yield
    warnings.showwarning = shown
    torch.__future__.set_swap_module_params_on_conversion(False)
    torch.set_default_device(None)


def run(cells: tuple[str, ...], recording: Recording | None = None) -> dict[str, Any]:
    """The namespace after the cells; watched where a recording is given."""
    sources = []
    torch.manual_seed(0)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, text in enumerate(map(textwrap.dedent, cells), 1):
        sources.append(Source(number, None, text, text, f"<cell {number}>"))
        code = compile(text, f"<cell {number}>", "exec")
        if recording is None:
            exec(code, namespace)
        else:
            with recording.watching(Program(sources), number):
                exec(code, namespace)
    return namespace


@pytest.mark.parametrize("cells", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_watched_program_sees_the_same(cells: tuple[str, ...]) -> None:
    plain = run(cells)["seen"]
    recording = Recording()
    assert run(cells, recording)["seen"] == plain
    assert recording.limits == () and recording.failure is None


def test_a_backward_inside_a_backward_takes_one_frame_more() -> None:
    plain, watched = run((NESTED,))["frames"], run((NESTED,), Recording())["frames"]
    assert len(plain) == len(watched) == 6
    levels = zip(pairwise(plain), pairwise(watched), strict=True)
    assert [(d - c) - (b - a) for (a, b), (c, d) in levels] == [1] * 5


#: How many frames there are at each level.
NESTED = """
import sys
import torch
frames = []
class Deep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        with torch.enable_grad():
            ctx.x = x.detach().requires_grad_() - 1
        return ctx.x.detach()
    @staticmethod
    def backward(ctx, gradient):
        frame, number = sys._getframe(), 0
        while frame is not None:
            frame, number = frame.f_back, number + 1
        frames.append(number)
        if ctx.x > 0:
            with torch.enable_grad():
                Deep.apply(ctx.x).sum().backward()
        return gradient
start = torch.tensor(6.0, requires_grad=True)
hook = start.register_hook(lambda gradient: gradient)
Deep.apply(start).sum().backward()
"""


def test_weak_references_of_the_programs_own_still_count() -> None:
    recording = Recording()
    a, b = torch.ones(2), torch.zeros(2)
    own = weakref.ref(a)
    with pytest.raises(RuntimeError, match="weakref"):
        torch.utils.swap_tensors(a, b)
    assert own() is a and recording.limits == ()


def test_the_limits_are_those_of_the_last_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = Recording()
    with monkeypatch.context() as patched:
        patched.setattr(CallSites, "here", _fail)
        run(("import torch\ny = torch.ones(2, requires_grad=True) * 2",), recording)
    assert recording.limits == ("recorder_failed",)
    run(("import torch\ny = torch.ones(2, requires_grad=True) * 2",), recording)
    assert recording.limits == ()


def _fail(*_: object) -> int:
    raise ValueError("on purpose")


def test_memory_shared_with_numpy_is_not_kept() -> None:
    cell = "import torch\nx = torch.ones(1000).exp()\na = x.detach().numpy()"
    recording = Recording()
    namespace = run((cell,), recording)
    kept = StorageWeakRef(namespace["x"].untyped_storage())
    assert not kept.expired()
    namespace.clear()
    assert kept.expired()


def test_a_mode_of_the_programs_sees_its_operations_alone() -> None:
    read = Counter(run((READS,))["seen"])
    assert Counter(run((READS,), Recording())["seen"]) == read


#: A mode of the program's sees every reading of a tensor's values.
READS = """
import torch
from torch.utils._python_dispatch import TorchDispatchMode
seen = []
class Log(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        seen.append(str(func))
        return func(*args, **(kwargs or {}))
w = torch.ones(3, requires_grad=True)
with Log():
    y = w * 2
    n = [y.sum().item(), float(y.mean())]
    t = torch.tensor(n)
    loss = (t * w[:2]).sum()
    y.data[0] = 2.0
    h = y.detach()
    h.numpy()[0] = 3.0
    loss.backward()
    y.sum().backward()
    torch.optim.SGD([w], lr=0.1).step()
"""


def test_torch_is_as_it_was_once_no_recording_is_left() -> None:
    gc.collect()
    before = torch.utils.weakref
    recording = Recording()
    del recording
    gc.collect()
    assert torch.utils.weakref is before


#: Values that are not where a tensor's memory would be: reading them unseen ends the process.
WRAPPED = """
import torch
from torch import nn
from torch.testing._internal.two_tensor import TwoTensor
two = lambda *shape: TwoTensor(torch.ones(shape), torch.ones(shape))
model = nn.Linear(2, 2)
model.weight = nn.Parameter(two(2, 2))
buffer, x = torch.zeros(2, requires_grad=True), torch.ones(1, 2)
{}
"""
BODIES = (
    "model(x).sum().backward()",  # the gradient of the bias is a wrapper, too
    """
for optimizer in (torch.optim.SGD(model.parameters(), 0.1), torch.optim.Adam(model.parameters())):
    for _ in range(2):
        optimizer.zero_grad(set_to_none=False)
        (model(x).sum() + buffer.sum()).backward()
        optimizer.step()
""",
    """
h = (model(x) * buffer).exp()
h.data.mul_(2)
model.weight.data.add_(1)
h.detach().mul_(1)
loss = h.sum().item() * buffer.sum()
loss.backward()
kept = [float(h.sum()), model.bias.grad, torch.stack([model.bias, buffer])]
""",
)


@pytest.mark.parametrize("body", BODIES)
def test_values_of_a_wrapper_are_left_alone(body: str) -> None:
    process = multiprocessing.get_context("fork").Process(target=_watched, args=(body,))
    process.start()
    process.join(60)
    assert process.exitcode == 0


def _watched(body: str) -> None:
    torch.set_num_threads(1)
    with shell_with_extension() as shell, captured() as said:
        for cell in ("%autograd_check on", WRAPPED.format(body)):
            assert shell.run_cell(cell, store_history=True).success
    assert "internal error" not in said.getvalue()


def test_what_is_counted_once_is_not_seen_by_a_mode() -> None:
    seen: list[Any] = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    holders._alone.cache_clear()
    with Log():
        holders.may_be_original(torch.ones(2, requires_grad=True))
    assert [str(f) for f in seen] == ["aten.ones.default"]
