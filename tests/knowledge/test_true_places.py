"""Reports name what this run did: its own functions, blocks, views and shapes."""

from __future__ import annotations

from knowledge.played import added, edited, explained, play

from autograd_explain.model import Finding, What

TORCH = "import torch\nfrom torch.utils.checkpoint import checkpoint\n"


def said(*cells: str) -> str:
    found = play((TORCH, *cells))
    assert found.trouble == ""
    return " ".join(found.output.split())


def finding(*cells: str) -> Finding:
    return explained((TORCH, *cells)).finding


def line_of(found: Finding, what: What) -> int:
    event = found.event(what)
    assert event is not None and event.place is not None
    return event.place.line


def test_another_checkpointed_function_of_the_same_name_is_not_blamed() -> None:
    text = said(
        """
count = [0]
def block(x):
    count[0] += 1
    return x * 2
a = torch.ones(2, requires_grad=True)
checkpoint(block, a, use_reentrant=False).sum().backward()""",
        """
flag = {"on": True}
def run(x):
    def block(y):
        return y.sin().cos() if flag["on"] else y.sin()
    out = checkpoint(block, x, use_reentrant=False)
    flag["on"] = False
    return out
run(a).sum().backward()""",
    )
    assert "checkpoint_recomputed_differently" in text
    assert "count[0] += 1" not in text


def test_a_block_behind_the_failing_line_is_not_blamed() -> None:
    found = finding(
        """def run():
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        w = x + 1
    def check(f):
        f()
    check(lambda: w.sum().backward())
    with torch.no_grad():
        w = x * 3
run()"""
    )
    assert found.cause == "grad_mode_off"
    assert line_of(found, What.CAUSE) == 3


def test_batched_gradients_need_one_dimension_more() -> None:
    explained_as = explained(
        (
            TORCH,
            "i = torch.ones(2, 3, requires_grad=True)\no = i * 2\ng = torch.ones(2, 3)\n"
            "torch.autograd.grad(o, i, g, is_grads_batched=True)",
        )
    )
    found = explained_as.finding
    assert (found.cause, found.variant) == ("output_gradient_mismatch", "batched")
    assert (found.facts["got"], found.facts["expected"]) == ("[2, 3]", "[n, 2, 3]")
    assert explained_as.rewrites == ()  # ones in the shape of the output are what was given


def test_a_view_of_one_of_several_views() -> None:
    found = finding(
        "y = torch.ones(4, 2, requires_grad=True) * 1\na, b = y.chunk(2)\nv = a.view(-1)\nv.add_(1)"
    )
    assert found.cause == "multi_view_written"
    assert found.facts["maker"] == "y.chunk(2)" and line_of(found, What.CREATED) == 2


def test_views_made_anew_in_each_round() -> None:
    cells = (
        TORCH,
        "x = torch.ones(3, 2, requires_grad=True)\nfor _ in range(2):\n"
        "    parts = (x * 2).unbind(0)\n    parts[0] += 1",
    )
    found = explained(cells)
    assert found.finding.facts["maker"] == "(x * 2).unbind(0)"
    (rewrite,) = found.rewrites
    repaired = edited(cells, rewrite)
    assert added(cells, repaired) == [
        "parts = list((x * 2).unbind(0))",
        "parts[0] = parts[0] + 1",
    ]
    assert play(repaired).diagnosis is None


def test_a_custom_function_is_no_module_hook() -> None:
    text = said(
        """
class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)
    @staticmethod
    def backward(ctx, grad):
        return grad
v = Same.apply(torch.ones(3, requires_grad=True) * 2)
v += 1"""
    )
    assert "the custom function `Same.apply(" in text
    assert "hook" not in text.partition("multi_view_written")[2]


def test_an_input_with_other_memory_is_no_side_branch() -> None:
    found = finding(
        "x = torch.ones(3, requires_grad=True)\nout = (x * 2).sum()\n"
        "with torch.no_grad():\n    x.set_(torch.zeros(3))\ntorch.autograd.grad(out, x)"
    )
    assert (found.cause, found.variant) == ("unused_in_graph", "exchanged")


def test_the_element_without_a_graph_is_named() -> None:
    found = finding(
        "x = torch.ones(3, requires_grad=True)\ny = x * 2\n"
        "torch.autograd.backward([x.sum(), y.detach().sum()])"
    )
    assert found.cause == "graph_cut"
    assert found.facts["root"] == "y.detach().sum()" and found.facts["operation"] == "y.detach()"


def test_no_gradient_is_asked_for_before_a_write_gives_the_graph() -> None:
    found = explained(
        (
            TORCH,
            "w = torch.ones(3, requires_grad=True)\nout = torch.zeros(3)\nout.add_(w)\n"
            "out.sum().backward()\nout.grad.sum()",
        )
    )
    assert found.finding.cause == "intermediate_grad"
    assert found.rewrites == () and found.finding.facts["maker"] == ""


def test_a_saved_value_that_was_freed_is_no_second_backward() -> None:
    explanation = explained(
        (
            TORCH,
            "x = torch.ones(2, requires_grad=True)\ny = (x * x).sum()\n"
            "node = y.grad_fn.next_functions[0][0]\ny.backward()",
            "print(node._saved_self)",
        )
    )
    found = explanation.finding
    assert (found.cause, found.variant) == ("second_backward", "saved_read")
    assert (found.facts["failed"], found.facts["tensor"]) == ("node._saved_self", "node")
    assert line_of(found, What.FREED) == 4
    assert [r.fix for r in explanation.rewrites] == ["retain_graph"]


def test_which_backward_freed_a_saved_value_is_not_guessed() -> None:
    explanation = explained(
        (
            TORCH,
            "x = torch.ones(2, requires_grad=True)\ny = (x * x).sum()\n"
            "node = y.grad_fn.next_functions[0][0]\ny.backward()\n(x * 3).sum().backward()",
            "print(node._saved_self)",
        )
    )
    assert explanation.finding.variant == "saved_read"
    assert explanation.finding.event(What.FREED) is None and not explanation.rewrites


def test_a_switch_that_was_applied_to_a_function() -> None:
    found = finding(
        "x = torch.ones(2, requires_grad=True)\ny = torch.ones(2)",
        "adder = torch.no_grad()(lambda x, y: x + y)\nz = adder(x, y)\nz.sum().backward()",
    )
    assert (found.cause, found.variant) == ("grad_mode_off", "applied")
    assert line_of(found, What.CAUSE) == 1
    found = finding(
        "def add(x, y):\n    return x + y\nx = torch.ones(2, requires_grad=True)",
        "z = torch.set_grad_enabled(False)(add)(x, x)\nz.sum().backward()",
    )
    assert (found.cause, line_of(found, What.CAUSE)) == ("grad_mode_off", 1)
    for switch in ("no_grad", "inference_mode"):
        found = finding(
            "lin = torch.nn.Linear(2, 1)\ndef f(x):\n    return lin(x)",
            f"quiet = torch.{switch}(f)\nquiet(torch.ones(2)).sum().backward()",
        )
        assert (found.cause, found.variant) == ("grad_mode_off", "applied")
        assert line_of(found, What.CAUSE) == 1


def test_what_requires_grad_now_is_not_said_to_require_none() -> None:
    found = finding(
        "w = torch.ones(2)\ny = w * 2\nw.requires_grad_()",
        "y.sum().backward()",
    )
    assert found.cause == "flag_set_late"


def test_a_function_that_records_is_not_blamed_for_its_switch() -> None:
    found = finding(
        "x = torch.ones(2, requires_grad=True)",
        "adder = torch.enable_grad()(lambda x, y: x + y)\nadder(x, x).detach().sum().backward()",
    )
    assert found.cause == "graph_cut"
