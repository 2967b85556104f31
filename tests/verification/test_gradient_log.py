"""What every backward of a run gave, whatever became of the tensors."""

import torch

from autograd_explain.verification.gradient_log import GradientLog

PROGRAM = """
def use(factor):
    {name} = torch.ones(1, requires_grad=True)
    (factor * {name}).backward()
    return {name}
"""


def _function(name):
    space = {"torch": torch}
    exec(compile(PROGRAM.format(name=name), "program", "exec"), space)
    return space["use"]


def _named(log):
    return {name: float(given) for name, given in log.named().items()}


def test_a_name_keeps_its_gradient_when_another_tensor_takes_the_address():
    first, then = _function("a"), _function("b")
    for _ in range(20):  # something else may get the address
        log, alive, taken = GradientLog({"program"}), [], set()
        with log.noting():
            address = id(first(2))
            while address not in taken and len(alive) < 3000:  # they fill every gap
                alive.append(then(3))
                taken.add(id(alive[-1]))
        if address in taken:
            break
    assert address in taken
    assert _named(log) == {"a": 2.0, "b": 3.0}


def test_of_the_tensors_under_a_name_the_last_one_counts():
    use, log, alive = _function("a"), GradientLog({"program"}), []
    with log.noting():
        for factor in (2, 3, 5, 4):
            alive.append(use(factor))
            alive = alive[-2:]
    assert _named(log) == {"a": 4.0}


def test_a_module_that_only_a_library_has_a_name_for_is_named():
    fit = "def fit(model):\n    loss = model(torch.ones(1)).sum()\n    loss.backward()"
    space, log = {"torch": torch}, GradientLog(())
    exec(compile(fit, "/lib/site-packages/trainer.py", "exec"), space)
    with log.noting():
        space["fit"](torch.nn.Linear(1, 1))
    assert _named(log) == {"model.weight": 1.0, "model.bias": 1.0}


def test_tensors_that_are_gone_make_room_for_others(monkeypatch):
    from autograd_explain.verification import gradient_log as module

    monkeypatch.setattr(module, "MAX_ENTRIES", 4)
    log = GradientLog(())
    with log.noting():
        for _ in range(10):
            torch.ones(1, requires_grad=True).mul(2).backward()
        assert log.complete
        alive = [torch.ones(1, requires_grad=True) for _ in range(6)]
        for tensor in alive:
            tensor.mul(2).backward()
    assert not log.complete
    assert log.of(alive[-1]) == 2.0


def test_a_tensor_is_known_by_every_name_that_its_function_has_for_it():
    text = (
        "def use():\n    held = {'w': torch.ones(1, requires_grad=True)}\n"
        "    for item in held.values():\n        item.requires_grad_()\n"
        "    (2 * held['w']).backward()\n    return held"
    )
    space, log = {"torch": torch}, GradientLog({"program"})
    exec(compile(text, "program", "exec"), space)
    with log.noting():
        held = space["use"]()
    assert _named(log) == {"item": 2.0}
    known = {name: float(given) for name, given in log.named(every=True).items()}
    assert known == {"item": 2.0, "held['w']": 2.0} and held
