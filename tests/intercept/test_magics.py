"""The magics: what they do, and what bad input gets."""

import gc
import inspect
import sys

import IPython
import pytest
from IPython.core.completer import provisionalcompleter

import autograd_explain
from autograd_explain.intercept import guard
from autograd_explain.intercept.transform import check_line

LEAF = "import torch; w = torch.ones(2, requires_grad=True)"


@pytest.fixture
def watched(monkeypatch):
    """What the recorder was asked to watch: (cell, whether it continued a recording)."""
    from contextlib import contextmanager

    import autograd_explain.record as record

    calls = []
    real = record.watch

    @contextmanager
    def watch(program, cell, recording=None):
        calls.append((cell, recording is not None))
        with real(program, cell, recording) as made:
            yield made
        calls.append("left")

    monkeypatch.setattr(record, "watch", watch)
    return calls


# %%autograd_check


def test_the_cell_runs_as_without_it(run, shell, capsys, watched):
    run(LEAF)
    result = run("%%autograd_check --no-verify\nx = w * 2\nx.detach() + 1")
    assert result.success and result.result.tolist() == [3.0, 3.0]
    assert shell.user_ns["x"].grad_fn is not None
    assert "Out[2]" in capsys.readouterr().out
    assert watched == [(2, False), "left"]


def test_await_magics_and_shell_commands(run, shell, capfd):
    run(LEAF)
    run(
        "%%autograd_check\nimport asyncio\nawait asyncio.sleep(0)\nhere = %pwd\n"
        "!echo from the shell\nfound = !echo captured\nw * 2;"
    )
    assert "from the shell" in capfd.readouterr().out
    assert shell.user_ns["found"] == ["captured"]
    assert shell.user_ns["here"]


def test_it_composes_with_other_cell_magics(run, shell, watched, capsys):
    run(LEAF)
    run("%%time\n%%autograd_check\na = 1\n")
    run("%%autograd_check\n%%time\nb = 1\n")
    run("%%capture out\n%%autograd_check\nprint('in')\nc = 1\n")
    run("%%autograd_check\n\n%%capture out2\nprint('in')\nd = 1\n")
    assert [shell.user_ns[n] for n in "abcd"] == [1, 1, 1, 1]
    assert [w for w in watched if w != "left"] == [(2, False), (3, True), (4, True), (5, True)]
    assert shell.user_ns["out"].stdout == shell.user_ns["out2"].stdout == "in\n"
    assert capsys.readouterr().out.count("Wall time") == 2


def test_an_exception_propagates_once(run, capsys):
    run(LEAF)
    result = run("%%autograd_check\nx = 1\nw += 1")
    assert isinstance(result.error_in_exec, RuntimeError)
    out = capsys.readouterr().out
    assert out.count("Traceback (most recent call last)") == 1
    assert "magics.py" not in out and "execute.py" not in out and "run_cell_magic" not in out
    (last,) = [e for e in autograd_explain.last().to_dict()["events"] if e["what"] == "failed"]
    assert (last["place"]["cell"], last["place"]["line"]) == (2, 3)


def test_a_keyboard_interrupt_is_one(run):
    result = run("%%autograd_check\nraise KeyboardInterrupt")
    assert isinstance(result.error_in_exec, KeyboardInterrupt)


def test_syntax_errors_are_pythons(run):
    result = run("%%autograd_check\nx = (")
    assert isinstance(result.error_before_exec, SyntaxError)


def test_a_display_without_semicolon_only(run, capsys):
    run("%%autograd_check\n1 + 1;")
    assert "Out[" not in capsys.readouterr().out


def test_language_for_one_cell(run, session):
    run(LEAF)
    run("%%autograd_check --no-verify --lang ja\nw += 1")
    assert autograd_explain.last().language == "ja"
    assert session.settings.language == "en"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("--bogus", "bogus"),
        ("--budget soon", "--budget must be a positive number of seconds, not 'soon'"),
        ("--budget -1", "--budget"),
        ("--lang fr", "--lang must be en, ja or zh, not 'fr'"),
        ("on", "on"),
        ("'", "quotation"),
    ],
)
def test_bad_options_run_nothing(run, shell, session, line, complaint, capsys):
    result = run(f"%%autograd_check {line}\nran = 1")
    out = "".join(capsys.readouterr())
    assert "UsageError" in out and complaint.lower() in out.lower()
    assert "Traceback" not in out
    assert not result.success
    assert "ran" not in shell.user_ns
    assert session.watch_all is None


def test_an_empty_cell(run, capsys):
    run("%%autograd_check\n")
    assert "UsageError" in "".join(capsys.readouterr())


def test_help_says_what_it_takes(shell):
    text = shell.find_line_magic("autograd_check").__doc__
    for option in ("--no-verify", "--budget", "--lang", "on | off | status"):
        assert option in text
    assert "%%autograd_check" in text
    assert check_line(["%%autograd_check?\n", "x\n"]) == ["%%autograd_check?\n", "x\n"]


def test_completion_finds_the_magics(shell):
    found = shell.complete("%%autograd_", "%%autograd_", 11)[1]
    assert "%%autograd_check" in found
    found = shell.complete("%autograd_", "%autograd_", 10)[1]
    assert {"%autograd_check", "%autograd_explain", "%autograd_fix"} <= set(found)


def test_a_terminal_waits_for_the_body(shell):
    check = shell.input_transformer_manager.check_complete
    assert check("%%autograd_check\nx = 1")[0] == check("%%time\nx = 1")[0] == "incomplete"


# Called in other ways than as a cell's first line


def test_through_an_alias(run, shell, capsys, watched):
    run(LEAF)
    run("%alias_magic -c ac autograd_check")
    result = run("%%ac\n\nx = 5\n!true\nx + 1")
    assert result.success and shell.user_ns["x"] == 5
    assert "Out[3]: 6" in capsys.readouterr().out
    assert watched == [(3, False), "left"]
    run("%%ac\n\nx = 6\nw += 1")
    (place,) = [
        e["place"] for e in autograd_explain.last().to_dict()["events"] if e["what"] == "failed"
    ]
    assert (place["cell"], place["line"], place["source"]) == (4, 4, "w += 1")


def test_through_an_alias_with_await(run, shell):
    run("%alias_magic -c ac autograd_check")
    run("import asyncio")
    result = run("%%ac\nawait asyncio.sleep(0)\nx = 7")
    assert result.success and shell.user_ns["x"] == 7


def test_through_an_alias_with_an_error(run, capsys):
    run("%alias_magic -c ac autograd_check")
    result = run("%%ac\n1/0")
    assert isinstance(result.error_in_exec, ZeroDivisionError)
    assert capsys.readouterr().out.count("Traceback (most recent call last)") == 1


# %autograd_check on, off, status


def test_on_watches_every_following_cell(run, session, watched):
    run(LEAF)
    run("%autograd_check on")
    run("a = w * 2")
    run("import asyncio\nawait asyncio.sleep(0)\nb = a * 2")
    run("1/0")
    run("%autograd_check off")
    run("c = 1")
    assert watched == [(3, False), "left", (4, True), "left", (5, True), "left", (6, True), "left"]


def test_on_executes_nothing_twice(run, shell, session):
    run("%autograd_check on")
    run("n = 0")
    run("n += 1")
    assert shell.user_ns["n"] == 1


def test_on_keeps_its_options(run):
    run(LEAF)
    run("%autograd_check on --no-verify --lang zh")
    run("w += 1")
    assert autograd_explain.last().language == "zh"


def test_status(run, capsys):
    run("%autograd_check status")
    run("%autograd_check")
    assert capsys.readouterr().out == "autograd_check: off\nautograd_check: off\n"
    run("%autograd_check on")
    capsys.readouterr()
    run("%autograd_check status")
    assert capsys.readouterr().out.startswith("autograd_check: on\n")


def test_an_unknown_state(run, session, capsys):
    run("%autograd_check maybe")
    assert "'maybe' is none of on, off, status" in "".join(capsys.readouterr())
    assert session.watch_all is None


def test_one_quiet_line_where_all_is_well(run, capsys):
    run("import torch")
    run("%%autograd_check\nx = torch.ones(2, requires_grad=True)\ny = (x * 2).sum()\ny.backward()")
    out = capsys.readouterr().out
    assert out.startswith("autograd_check: nothing wrong") and out.count("\n") == 1


def test_a_recorder_that_fails_is_not_the_users_problem(run, shell, monkeypatch, capsys):
    import autograd_explain.record as record

    monkeypatch.setattr(record, "watch", lambda *a: 1 / 0)
    result = run("%%autograd_check\nx = 3\nx")
    assert result.result == 3
    assert "internal error (record)" in capsys.readouterr().err


# %autograd_explain


def test_the_last_report_again_in_full(run, capsys):
    run(LEAF)
    run("w += 1")
    short = capsys.readouterr().out
    run("%autograd_explain")
    full = capsys.readouterr().out
    assert "leaf_written" in full and len(full) > len(short) / 2
    assert "docs.pytorch.org" in full and "docs.pytorch.org" not in short


def test_nothing_explained_yet(run, capsys):
    run("%autograd_explain")
    run("%autograd_fix")
    out = "".join(capsys.readouterr())
    assert out.count("UsageError: Nothing has been explained yet") == 2


def test_a_cause_by_name(run, capsys):
    run("%autograd_explain leaf_written")
    assert "Leaf tensor written in place" in capsys.readouterr().out


def test_debug(run, capsys):
    guard.clear()
    run("%autograd_explain --debug")
    assert "no internal error" in capsys.readouterr().out


# %autograd_fix


@pytest.fixture
def offered(shell, monkeypatch):
    """What front ends are given: the text, and whether it replaces that of the running cell."""
    found = []
    monkeypatch.setattr(
        type(shell), "set_next_input", lambda self, s, replace=False: found.append((s, replace))
    )
    return found


def test_the_rewritten_cell_takes_the_place_of_the_magic(run, offered):
    run(LEAF)
    run("x = w * 1\nw += 1  # here")
    rewrites = autograd_explain.last().diagnosis.rewrites
    run("%autograd_fix")
    assert offered == [(rewrites[0].edits[0].new_source, True)]
    assert "# here" in offered[0][0]
    run(f"%autograd_fix {len(rewrites)}")
    assert offered[-1] == (rewrites[-1].edits[-1].new_source, True)


def test_a_cell_with_more_than_the_magic_keeps_its_text(run, offered):
    run(LEAF)
    run("w += 1")
    run("%autograd_fix\nkept = 1")
    assert [replace for _, replace in offered] == [False]
    run("%config AutogradExplain.fix = 'insert'")
    run("%autograd_fix")
    assert offered[-1][1] is False


def test_on_top_of_the_cell_it_replaces_its_text_and_runs_nothing(run, shell, offered, session):
    run(LEAF)
    run("n = globals().get('n', 0) + 1\nw += 1")
    assert run("%%autograd_fix\nn = globals().get('n', 0) + 1\nw += 1").success
    rewrite = autograd_explain.last().diagnosis.rewrites[0]
    assert offered == [(rewrite.edits[0].new_source, True)]
    assert shell.user_ns["n"] == 1
    assert session._watch_next is not None  # the rewritten cell is the one to be recorded


def test_on_top_of_another_cell_it_replaces_nothing(run, offered, capsys):
    run(LEAF)
    run("w += 1")
    run("%%autograd_fix\nother = 1")
    assert "is not that of In[2]" in "".join(capsys.readouterr())
    assert offered == []


def test_an_earlier_cell_is_handed_over_whole_and_marked(run, offered, capsys):
    run(LEAF)
    run("def step(t):\n    t += 1")
    run("step(w)")
    run("%autograd_fix")
    edit = autograd_explain.last().diagnosis.rewrites[0].edits[0]
    mark, _, text = offered[0][0].partition("\n")
    assert mark == "# In[2] as changed by the rewrite: put this in its place"
    assert text == edit.new_source
    run("%%autograd_fix\ndef step(t):\n    t += 1")
    assert offered[-1] == (edit.new_source, True)


def test_a_cell_magic_stays_the_first_line(run, offered):
    run(LEAF)
    run("%%autograd_check --no-verify\ndef step(t):\n    t += 1")
    run("step(w)")
    run("%autograd_fix")
    lines = offered[0][0].splitlines()
    assert lines[0] == "%%autograd_check --no-verify" and lines[1].startswith("# In[2]")


ON_FILE = "def step(t):\n    h = torch.sigmoid(t)\n    h += 1\n    return h.sum()"


@pytest.fixture
def in_a_file(tmp_path, monkeypatch, run):
    """A report whose rewrite changes a file, with Windows' line ends and an encoding of its own."""
    file = tmp_path / "steps_of_mine.py"
    lines = ("# -*- coding: latin-1 -*-", "# \xe9", "import torch", *ON_FILE.splitlines())
    text = "\r\n".join(lines)
    file.write_bytes(text.encode("latin-1"))
    file.chmod(0o640)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "steps_of_mine", raising=False)
    run(LEAF)
    run("import steps_of_mine")
    run("steps_of_mine.step(w).backward()")
    return file


def test_a_file_is_written_only_where_that_is_asked_for(run, in_a_file, offered, capsys):
    before = in_a_file.read_bytes()
    capsys.readouterr()
    run("%autograd_fix")
    out = capsys.readouterr().out
    assert "-    h += 1" in out and "`%autograd_fix 1 --write` writes this" in out
    assert in_a_file.read_bytes() == before
    run("%autograd_fix --write")
    out = capsys.readouterr().out
    assert out.index("-    h += 1") < out.index("steps_of_mine.py is written")
    after = in_a_file.read_bytes()
    assert after.startswith(before[:60]) and b"\n" not in after.replace(b"\r\n", b"")
    assert after != before and not after.endswith(b"\n")
    assert in_a_file.stat().st_mode & 0o777 == 0o640
    assert [f.name for f in in_a_file.parent.iterdir() if f.is_file()] == [in_a_file.name]
    assert offered == []


def test_a_file_that_was_changed_since_is_left_alone(run, in_a_file, capsys):
    in_a_file.write_text("# mine\n")
    run("%autograd_fix --write")
    assert "was changed since the report" in "".join(capsys.readouterr())
    assert in_a_file.read_text() == "# mine\n"


@pytest.mark.parametrize("number", ["0", "99", "-1", "x"])
def test_a_rewrite_that_is_not_there(run, offered, capsys, number):
    run(LEAF)
    run("w += 1")
    run(f"%autograd_fix {number}")
    out = "".join(capsys.readouterr())
    assert "UsageError" in out
    assert offered == []


# explain()


def test_explain_by_hand(run, shell):
    run(LEAF)
    run(
        "try:\n    w += 1\nexcept RuntimeError as e:\n    import autograd_explain as ax\n"
        "    found = ax.explain(e)\n    same = ax.explain()"
    )
    assert shell.user_ns["found"].id == shell.user_ns["same"].id == "leaf_written"
    assert shell.user_ns["found"].to_dict()["events"][0]["place"]["cell"] == 2
    assert autograd_explain.explain(ValueError("no")) is None


def test_explain_without_a_notebook(tmp_path, monkeypatch):
    script = tmp_path / "plain_script.py"
    script.write_text(
        "import torch, autograd_explain\nw = torch.ones(2, requires_grad=True)\n"
        "try:\n    w += 1\nexcept RuntimeError as error:\n"
        "    found = autograd_explain.explain(error)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import plain_script

    place = plain_script.found.to_dict()["events"][0]["place"]
    assert (place["file"], place["line"]) == (str(script), 4)
    gc.collect()


def test_public_names_have_docs():
    for name in autograd_explain.__all__:
        assert inspect.getdoc(getattr(autograd_explain, name)), name


def test_a_slip_in_a_name_and_a_question_in_another_language(run, capsys):
    run("%autograd_explain saved_value_overwriten")
    assert "Did you mean: saved_value_overwritten" in capsys.readouterr().out
    run("%autograd_explain 勾配が None になるのはなぜ")
    assert "勾配" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%autograd_explain saved_v", ["saved_value_overwritten"]),
        ("%autograd_explain --", ["--debug"]),
        ("%autograd_check o", ["off", "on"]),
        ("%autograd_check on --n", ["--no-verify"]),
        ("%%autograd_check --lang ", ["en", "ja", "zh"]),
        ("%autograd_fix ", ["--write", "1"]),
        ("%%autograd_fix ", ["1"]),
        ("%autograd_fix 1 --w", ["--write"]),
    ],
)
def test_arguments_complete(run, shell, line, expected):
    run("import torch\nw = torch.ones(2, requires_grad=True)")
    run("y = w.exp()\ny += 1\ny.sum().backward()")
    text = line.rpartition(" ")[2]
    found = shell.complete(text, line, len(line))[1]
    assert sorted(set(found) & set(expected)) == expected
    if text:
        assert all(each.startswith(text) for each in found)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%autograd_graph loss --", ["--around", "--distance"]),
        ("%%autograd_verify --", ["--budget", "--cell", "--file"]),
        ("%autograd_check --lang ", ["en", "ja", "zh"]),
    ],
)
def test_nothing_of_pythons_is_offered_with_them(shell, line, expected):
    with provisionalcompleter():
        found = {each.text for each in shell.Completer.completions(line, len(line))}
    if IPython.version_info < (8, 6):  # a completer cannot keep the others out
        assert found >= set(expected)
    else:
        assert sorted(found) == expected


def test_completion_is_gone_after_unloading(run, shell):
    matchers = [*shell.Completer.custom_matchers]
    run("%unload_ext autograd_explain")
    if IPython.version_info >= (8, 6):
        assert len(shell.Completer.custom_matchers) < len(matchers)
    assert not [key for key in shell.strdispatchers["complete_command"].strs if "autograd" in key]
