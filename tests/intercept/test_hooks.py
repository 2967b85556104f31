"""What happens after a failing cell, and what must not happen."""

import gc
import sys
import warnings
import weakref

import pytest

import autograd_explain
from autograd_explain.intercept import guard
from autograd_explain.model import Kind

LEAF = "import torch; w = torch.ones(2, requires_grad=True)"
MESSAGE = "a leaf Variable that requires grad is being used in an in-place operation."


class Answer:
    """Stands for an Explanation."""

    def __init__(self, incident, options):
        self.kind, self.message, self.cell = incident.kind, incident.message, incident.cell
        self.place, self.language = incident.place, options.language
        self.detail, self.diagnosis = options.detail, object()  # never the same as another
        self.evidence = {k: v for k, v in incident.evidence.items() if isinstance(v, str)}

    def print(self, file=None):
        print(f"<explained {self.kind.value} in {self.cell}>")


@pytest.fixture
def answers(session):
    """Everything explained, by a pipeline that explains autograd's messages only."""
    found = []

    def explain(incident, options, *, verifier=None, notes=()):
        if "in-place" not in incident.message and "Tensor" not in incident.message:
            return None
        found.append(Answer(incident, options))
        found[-1].notes = tuple(n.key for n in notes)
        found[-1].recorded = incident.recording is not None
        return found[-1]

    session.explainer.explain = explain
    return found


# A failing cell


@pytest.mark.parametrize(
    "cell",
    [
        "w += 1",
        "import asyncio\nawait asyncio.sleep(0)\nw += 1",
        "%%time\nw += 1",
        "%%capture out\nw += 1",
        "%%autograd_check\nw += 1",
        "%autograd_check cell\nw += 1",
    ],
)
def test_a_failing_cell_is_explained_once_after_its_traceback(run, answers, cell, capsys):
    run(LEAF)
    run(cell)
    assert [a.message for a in answers] == [MESSAGE]
    assert (answers[0].cell, answers[0].place.source) == (2, "w += 1")
    out = capsys.readouterr().out
    assert out.count("<explained error in 2>") == 1
    assert out.rstrip().endswith("<explained error in 2>")
    assert autograd_explain.last() is answers[0]


def test_a_script_run_by_run(run, answers, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"{LEAF}\ndef f():\n    w.mul_(2)\nf()\n")
    run(f"%run {script}")
    assert [(a.message, a.place.file, a.place.line) for a in answers] == [(MESSAGE, str(script), 3)]
    run("x = 1")
    run("try:\n    1/0\nexcept ZeroDivisionError:\n    pass")
    assert len(answers) == 1, "an error shown earlier is not explained again"


def test_a_foreign_error_is_left_alone(run, answers, capsys):
    run(LEAF)
    before = capsys.readouterr().out
    run("1/0")
    assert answers == []
    assert "ZeroDivisionError" in capsys.readouterr().out
    assert before == ""
    assert autograd_explain.last() is None


def test_an_error_that_the_user_caught_is_theirs(run, answers):
    run(LEAF)
    run("try:\n    w += 1\nexcept RuntimeError:\n    pass")
    assert answers == []


def test_the_error_behind_a_wrapped_one(run, answers):
    run(LEAF)
    run("try:\n    w += 1\nexcept RuntimeError as e:\n    raise ValueError('step failed') from e")
    assert [a.message for a in answers] == [MESSAGE]


def test_an_error_in_the_cell_that_loads(plain_shell, capsys):
    plain_shell.run_cell(f"%load_ext autograd_explain\n{LEAF}\nw += 1", store_history=True)
    last = autograd_explain.last()
    assert last is not None
    assert last.to_dict()["events"][0]["place"]["line"] == 3


def test_nothing_without_torch(run, answers, monkeypatch):
    run(LEAF)
    monkeypatch.delitem(sys.modules, "torch")
    run("raise RuntimeError('a leaf Variable is being used in an in-place operation')")
    assert answers == []


def test_disabled(run, answers):
    run(LEAF)
    run("%config AutogradExplain.enabled = False")
    run("w += 1")
    run("(w * 2).grad")
    assert answers == []


def test_the_error_object_and_the_result_are_untouched(run, shell, answers):
    run(LEAF)
    result = run("w += 1")
    error = result.error_in_exec
    assert result.error_before_exec is None
    assert not result.success
    assert sys.last_value is error
    assert vars(error) == {}
    assert error.__context__ is None and error.__cause__ is None


def test_the_next_cell_runs_as_usual(run, shell):
    run(LEAF)
    run("w += 1")
    assert run("w.sum().item()").result == 2.0
    assert shell.user_ns["Out"] == {3: 2.0}


def test_another_extensions_handler_stays(run, shell, answers):
    seen = []
    shell.set_custom_exc((RuntimeError,), lambda *a, **k: seen.append(a[1]))
    run(LEAF)
    run("w += 1")
    assert seen == [RuntimeError]
    assert [a.message for a in answers] == [MESSAGE]
    assert shell.custom_exceptions == (RuntimeError,)


def test_keyboard_interrupt_in_the_cell_is_not_explained(run, answers):
    run(LEAF)
    run("raise KeyboardInterrupt")
    assert answers == []


# Warnings

GRAD = "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"


def test_a_warning_is_explained_when_the_cell_ends(recwarn, run, answers, capsys):
    run(LEAF)
    run("class C: pass\nc = C()\nc.h = w * 2\nprint(c.h.grad)\nprint('end')")
    assert [str(w.message).startswith(GRAD) for w in recwarn] == [True]
    out = capsys.readouterr().out
    assert out.splitlines() == ["None", "end", "<explained warning in 2>"]
    (answer,) = answers
    assert answer.kind is Kind.WARNING
    assert (answer.cell, answer.place.line, answer.place.source) == (2, 4, "print(c.h.grad)")
    assert answer.evidence == {"expression": "c.h.grad", "operand": "c.h"}


def test_a_warning_in_a_function_and_under_time(run, answers):
    run(LEAF)
    run("def f(t):\n    return t.grad")
    run("%%time\nf(w * 3)")
    (answer,) = answers
    assert (answer.cell, answer.place.cell, answer.place.line) == (3, 2, 2)


def test_the_copy_warning(run, answers):
    run(LEAF)
    run("xs = [w]\nd = torch.tensor(\n    xs[0],\n)")
    (answer,) = answers
    assert answer.message.startswith("To copy construct from a tensor")
    assert answer.evidence["operand"] == "xs[0]"


def test_each_place_once_per_cell(run, answers):
    run(LEAF)
    run("warnings = __import__('warnings'); warnings.simplefilter('always')")
    run("h = w * 2\nfor _ in range(5):\n    h.grad\nh.grad")
    assert [a.place.line for a in answers] == [3, 4]
    run("warnings.resetwarnings()")


def test_warnings_of_libraries_are_nobodys_fault(run, answers, tmp_path, monkeypatch):
    package = tmp_path / "site-packages"
    package.mkdir()
    (package / "somelib.py").write_text("def peek(t):\n    return t.grad\n")
    monkeypatch.syspath_prepend(str(package))
    run(LEAF)
    run("import somelib\nsomelib.peek(w * 2)")
    assert answers == []
    run("warnings = __import__('warnings'); warnings.simplefilter('always')")
    run("h = w * 2\nsomelib.peek(h)")  # what it was given by name is the user's
    assert [(a.cell, a.place.line) for a in answers] == [(4, 2)]
    run("warnings.resetwarnings()")


def test_other_warnings_pass_straight_through(recwarn, run, answers):
    run("import warnings\nwarnings.warn('about a tensor of mine')")
    assert [str(w.message) for w in recwarn] == ["about a tensor of mine"]
    assert answers == []


def test_the_previous_hook_gets_every_warning(plain_shell):
    seen = []
    original = warnings.showwarning
    warnings.showwarning = lambda *a, **k: seen.append(str(a[0]))
    try:
        autograd_explain.load_ipython_extension(plain_shell)
        plain_shell.run_cell("import warnings; warnings.warn('one')")
        autograd_explain.unload_ipython_extension(plain_shell)
        plain_shell.run_cell("warnings.warn('two')")
    finally:
        warnings.showwarning = original
    assert seen == ["one", "two"]


def test_a_hook_put_over_ours_stays_when_we_leave(recwarn, plain_shell):
    original = warnings.showwarning
    autograd_explain.load_ipython_extension(plain_shell)
    ours = warnings.showwarning
    theirs = lambda *a, **k: ours(*a, **k)  # noqa: E731
    warnings.showwarning = theirs
    try:
        autograd_explain.unload_ipython_extension(plain_shell)
        assert warnings.showwarning is theirs
        plain_shell.run_cell("import warnings; warnings.warn('still shown')")
    finally:
        warnings.showwarning = original
    assert [str(w.message) for w in recwarn] == ["still shown"]


def test_catch_warnings_is_the_users(run, answers):
    run(LEAF)
    run("import warnings\nwith warnings.catch_warnings(record=True) as seen:\n    (w * 2).grad")
    run("assert len(seen) == 1")
    assert answers == []


# The run after a failure


def test_the_next_run_of_a_failed_cell_is_recorded(run, answers):
    run(LEAF)
    run("w += 1")
    run("x = 1")
    run("w += 1")
    assert [(a.notes, a.recorded) for a in answers] == [(("recorded_next",), False), ((), True)]


def test_not_if_the_user_does_not_want_it(run, answers):
    run(LEAF)
    run("%config AutogradExplain.record_next_run = False")
    run("w += 1")
    run("w += 1")
    assert [(a.notes, a.recorded) for a in answers] == [((), False), ((), False)]


def test_an_edited_cell_is_still_that_cell(run, answers):
    run(LEAF)
    run("a = w * 2\nb = a.exp()\nw += 1\nb.sum()")
    run("a = w * 2\nb = a.exp()\nw += 2\nb.sum()")
    run("w += 3")
    assert [a.recorded for a in answers] == [False, True, False]


# Loading and unloading


def state_of(shell):
    magics = shell.magics_manager.magics
    return (
        {event: list(callbacks) for event, callbacks in shell.events.callbacks.items()},
        {kind: set(table) for kind, table in magics.items()},
        "AutogradMagics" in shell.magics_manager.registry,
        [c for c in shell.configurables if type(c).__name__.startswith("Autograd")],
        list(shell.input_transformer_manager.line_transforms),
        warnings.showwarning,
        shell.custom_exceptions,
        shell.showtraceback.__func__,
    )


def test_unload_leaves_everything_as_it_was(plain_shell, capsys):
    before = state_of(plain_shell)
    plain_shell.run_line_magic("load_ext", "autograd_explain")
    assert state_of(plain_shell) != before
    plain_shell.run_line_magic("unload_ext", "autograd_explain")
    assert state_of(plain_shell) == before
    assert capsys.readouterr() == ("", "")


def test_loading_again_changes_nothing(shell, capsys):
    before = state_of(shell)
    shell.run_line_magic("load_ext", "autograd_explain")
    autograd_explain.load_ipython_extension(shell)
    assert state_of(shell) == before
    shell.run_line_magic("reload_ext", "autograd_explain")
    after = state_of(shell)
    assert after[1:3] == before[1:3]
    assert [len(part) for part in after[3:5]] == [len(part) for part in before[3:5]]
    assert "already loaded" in capsys.readouterr().out


def test_unload_twice(plain_shell):
    autograd_explain.load_ipython_extension(plain_shell)
    autograd_explain.unload_ipython_extension(plain_shell)
    autograd_explain.unload_ipython_extension(plain_shell)


def test_settings_and_the_last_report_survive_a_reload(run, shell, answers):
    run("%config AutogradExplain.language = 'ja'")
    run(LEAF)
    run("w += 1")
    run("%reload_ext autograd_explain")
    assert autograd_explain._session.settings.language == "ja"
    assert autograd_explain.last() is answers[0]


def test_unloading_inside_a_watched_cell(run, shell):
    run(LEAF)
    run("%%autograd_check\n%unload_ext autograd_explain\nx = w * 2")
    assert shell.user_ns["x"].requires_grad
    assert autograd_explain._session is None


# Failures of ours


def test_a_failure_of_ours_is_one_quiet_line(run, session, capsys):
    def explode(*args, **options):
        raise ZeroDivisionError("ours")

    session.explainer.explain = explode
    run(LEAF)
    result = run("w += 1")
    out, err = capsys.readouterr()
    assert isinstance(result.error_in_exec, RuntimeError)
    assert "ZeroDivisionError" not in out
    assert err == (
        "autograd_explain: set aside an internal error (explain); "
        "%autograd_explain --debug shows it\n"
    )
    run("%autograd_explain --debug")
    assert "ZeroDivisionError: ours" in capsys.readouterr().out


def test_a_failure_of_ours_holds_no_tensor(run, session, shell):
    def explode(incident, *args, **options):
        raise ZeroDivisionError("ours")

    session.explainer.explain = explode
    run("import torch\nleaf = torch.ones(2, requires_grad=True)\nh = leaf * 2\nleaf += 1")
    assert "ZeroDivisionError" in guard.report()
    assert_freed(shell, "h")


@pytest.mark.parametrize("point", ["start", "finish", "settled"])
def test_a_failure_in_the_registry(run, session, monkeypatch, capsys, point):
    monkeypatch.setattr(session.cells, point, lambda *a: 1 / 0)
    run(LEAF)
    result = run("w += 1")
    assert isinstance(result.error_in_exec, RuntimeError)
    assert capsys.readouterr().out.count("Traceback") == 1
    monkeypatch.undo()
    assert run("1 + 1").result == 2


def test_a_failure_while_showing(run, session, capsys, monkeypatch):
    monkeypatch.setattr("autograd_explain.intercept.screen.show", lambda *a: 1 / 0)
    run(LEAF)
    run("w += 1")
    out, err = capsys.readouterr()
    assert "internal error (show)" in err
    assert out.count("Traceback") == 1


def test_a_failure_in_a_warning_does_not_reach_the_users_line(run, session, shell, capsys):
    session.explainer.explain = lambda *a, **k: 1 / 0
    run(LEAF)
    run("g = (w * 2).grad\ndone = True")
    assert shell.user_ns["done"] is True
    assert "internal error (warning)" in capsys.readouterr().err


def test_ctrl_c_while_explaining_ends_it_quietly(run, session, capsys):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    session.explainer.explain = interrupted
    run(LEAF)
    run("w += 1")
    out, err = capsys.readouterr()
    assert "KeyboardInterrupt" not in out + err
    assert out.rstrip().endswith("interrupted")
    assert run("1 + 1").result == 2


def test_a_users_exception_whose_text_fails(run, session):
    run("import torch\nclass Bad(RuntimeError):\n    def __str__(self): raise ValueError('no')")
    run("raise Bad")
    assert run("1 + 1").result == 2


# Memory


def assert_freed(shell, name):
    """The user's tensor goes when the user and IPython let go of it."""
    reference = weakref.ref(shell.user_ns[name])
    shell.run_cell(f"del {name}", store_history=True)
    shell.run_cell("raise ValueError('the next error')", store_history=True)
    gc.collect()
    assert reference() is None


def test_nothing_keeps_a_tensor_after_the_next_cell(run, shell):
    run("import torch\nleaf = torch.ones(2, requires_grad=True)\nh = leaf * 2\nleaf += 1")
    assert autograd_explain.last() is not None
    assert_freed(shell, "h")


def test_nothing_keeps_a_tensor_after_a_warning(run, shell):
    run("import torch\nleaf = torch.ones(2, requires_grad=True)\nh = leaf * 2\nh.grad")
    assert_freed(shell, "h")


def test_nothing_keeps_a_tensor_of_a_failed_function(run, shell):
    run("import torch, weakref\nleaf = torch.ones(2, requires_grad=True)\nseen = []")
    run("def f():\n    h = leaf.exp()\n    seen.append(weakref.ref(h))\n    leaf.add_(1)")
    run("f()")
    assert autograd_explain.last() is not None
    run("raise ValueError('the next error')")
    gc.collect()
    assert shell.user_ns["seen"][0]() is None
