"""What `torch.autograd.grad` is told about inputs that are not used."""

from __future__ import annotations

from rewriting import program_of, result, spot

from autograd_explain.knowledge.unused_in_graph.unused import unused_allowed, unused_as_zeros

CODE = """
def update(loss, params):
    grads = torch.autograd.grad(loss, params, create_graph=True)
    return [p - g for p, g in zip(params, grads)]
"""


def test_zeros_where_the_gradients_are_computed_with() -> None:
    program = program_of(CODE)
    text = result(unused_as_zeros(program, spot(program, "params, create")))
    assert text is not None
    assert "(loss, params, create_graph=True, materialize_grads=True)" in text


def test_no_zeros_where_none_is_expected() -> None:
    code = CODE.replace("p - g for", "p if g is None else p - g for")
    program = program_of(code)
    place = spot(program, "params, create")
    assert unused_as_zeros(program, place) is None
    text = result(unused_allowed(program, place))
    assert text is not None
    assert "(loss, params, create_graph=True, allow_unused=True)" in text


def test_nothing_said_twice() -> None:
    program = program_of(CODE.replace("create_graph", "allow_unused=False, create_graph"))
    place = spot(program, "params, allow")
    assert unused_as_zeros(program, place) is None
    assert unused_allowed(program, place) is None


def test_no_zeros_where_nothing_computes_with_the_gradients() -> None:
    program = program_of("grads = torch.autograd.grad(loss, [w, v])\n")
    assert unused_as_zeros(program, spot(program, "[w, v]")) is None


def test_zeros_inside_a_larger_expression() -> None:
    program = program_of("n = sum(g.norm() for g in torch.autograd.grad(loss, ws))\n")
    text = result(unused_as_zeros(program, spot(program, "ws")))
    assert text == (
        "n = sum(g.norm() for g in torch.autograd.grad(loss, ws, materialize_grads=True))\n"
    )


def test_nothing_allowed_where_the_gradient_is_computed_with() -> None:
    program = program_of("def slope(y, x):\n    return torch.autograd.grad(y, x)[0]\n")
    assert unused_allowed(program, spot(program, "y, x)[")) is None
    program = program_of("g = torch.autograd.grad(y, x)[0]\nif g is None:\n    g = 0 * x\n")
    assert unused_allowed(program, spot(program, "y, x")) is not None


def test_zeros_where_another_method_computes_with_the_gradients() -> None:
    program = program_of("""
        class Meter:
            def compute(self, loss):
                self.grads = torch.autograd.grad(loss, self.ps)
            def norm(self):
                return sum(g.norm() for g in self.grads)
        """)
    assert unused_allowed(program, spot(program, "self.ps")) is None
    assert unused_as_zeros(program, spot(program, "self.ps")) is not None
