"""A dozen made-up explanations: every kind of content, and content that wants to break out."""

from __future__ import annotations

from autograd_explain.inspect.live.condense import GraphRow, Operation, Overwritten
from autograd_explain.inspect.live.graph_report import GraphReport
from autograd_explain.inspect.live.memory import Memory, Sharer
from autograd_explain.inspect.live.tensor_report import TensorReport
from autograd_explain.model import (
    Certainty,
    Comparison,
    Confidence,
    Diagnosis,
    Edit,
    Event,
    Finding,
    GraphLine,
    Kind,
    Outcome,
    Place,
    Reason,
    Rewrite,
    Role,
    Safety,
    Span,
    TensorFact,
    What,
)
from autograd_explain.render import Explanation
from autograd_explain.render.look import GraphPicture, TensorTable

EN = """---
title: Saved value overwritten
see:
  - title: In-place operations
    url: https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd
questions: [a, b, c]
---
## summary
`{tensor}` was overwritten by `{write}` after the forward pass had saved it.

## summary quiet
`{tensor}` was overwritten, and nothing noticed.

## cause
`{saver}` keeps `{tensor}` because its gradient is computed from it. `{write}` changed it
*in place*, so the value is gone when `backward()` asks for it.

A second paragraph, with a [link](https://pytorch.org) and **emphasis**.

## fix clone
Write to a copy of `{tensor}`
`.clone()` passes the gradient through unchanged.

## fix detach
Cut `{tensor}` off from the graph
No gradient flows through it any more.

## warnings
- `.data` hides the write, and the gradient is wrong.
- `retain_graph=True` keeps the graph, not the value of `{tensor}`.

## check
- Which statement writes `{tensor}`?
- Was it meant to?

## background
Versions are counted per storage.
"""

JA = """---
title: 保存された値の上書き
questions: [a, b, c]
---
## summary
`{tensor}` は、順伝播が保存した後に `{write}` で上書きされました。

## summary quiet
`{tensor}` は気付かれないまま上書きされました。

## cause
`{saver}` は勾配の計算に `{tensor}` を使うため、その値を保持します。`{write}` がそれを
*その場で* 書き換えたので、`backward()` が必要とする時点では値が失われています。

二つ目の段落です。[リンク](https://pytorch.org) と **強調** があります。

## fix clone
`{tensor}` のコピーに書き込む
`.clone()` は勾配をそのまま通します。

## fix detach
`{tensor}` を計算グラフから切り離す
勾配はそこを通らなくなります。

## warnings
- `.data` は書き込みを隠すだけで、勾配は誤ったままです。
- `retain_graph=True` が残すのはグラフで、`{tensor}` の値ではありません。

## check
- `{tensor}` に書き込むのはどの文ですか。
- それは意図したものですか。

## background
バージョンはストレージごとに数えられます。
"""

ZH = """---
title: 保存的值被改写
questions: [a, b, c]
---
## summary
前向传播保存 `{tensor}` 之后，`{write}` 又改写了它。

## summary quiet
`{tensor}` 被改写了，却没有任何提示。

## cause
`{saver}` 计算梯度时要用到 `{tensor}`，所以保存了它的值。`{write}` *原地* 改写了它，
等到 `backward()` 需要时，原来的值已经不在了。

第二段，带有[链接](https://pytorch.org)和 **强调** 。

## fix clone
写入 `{tensor}` 的副本
`.clone()` 会原样传递梯度。

## fix detach
让 `{tensor}` 与计算图断开
梯度不再从这里流过。

## warnings
- `.data` 只是掩盖了这次写入，梯度仍然是错的。
- `retain_graph=True` 保留的是计算图，而不是 `{tensor}` 的值。

## check
- 是哪条语句写入了 `{tensor}`？
- 这是有意为之吗？

## background
版本按存储计数。
"""

TEXTS = {"en": EN, "ja": JA, "zh": ZH}
MESSAGE = (
    "one of the variables needed for gradient computation has been modified by an inplace "
    "operation: [torch.FloatTensor [2, 2]], which is output 0 of ReluBackward0, is at version 2; "
    "expected version 1 instead. Hint: the backtrace further above shows the operation."
)
SEEN = Certainty.OBSERVED


def place(
    cell: int | None, line: int, source: str, part: str = "", file: str = "", function: str = ""
) -> Place:
    """A line; `part` is the expression meant."""
    start = source.index(part or source)
    span = Span(line, start + 4, line, start + 4 + len(part or source))
    return Place(cell, file or None, line, source, function or None, span, indent=4)


def culprit(name: str = "hidden", saved: int | None = 1, current: int | None = 2) -> TensorFact:
    names = (name, f"self.{name}") if name else ()
    return TensorFact(
        Role.CULPRIT, names, (2, 2), "float32", "cpu", False, True, "ReluBackward0", saved, current
    )


def facts(
    tensor: str = "hidden", write: str = "hidden += 1", saver: str = "out = f(hidden)"
) -> dict[str, str]:
    return {"tensor": tensor, "write": write, "saver": saver}


def finding(*events: Event, tensor: TensorFact | None = None, **changes: object) -> Finding:
    values: dict[str, object] = {
        "cause": "saved_value_overwritten",
        "confidence": Confidence.PROVEN,
        "facts": facts(),
        "tensors": (tensor or culprit(),),
        "events": events,
        **changes,
    }
    return Finding(**values)  # type: ignore[arg-type]


def explanation(found: Finding, *rewrites: Rewrite, **changes: object) -> Explanation:
    values: dict[str, object] = {"kind": Kind.ERROR, "message": MESSAGE, **changes}
    diagnosis = Diagnosis(finding=found, rewrites=rewrites, **values)  # type: ignore[arg-type]
    return Explanation(diagnosis, texts=TEXTS)


SAVED = Event(What.SAVED, place(3, 2, "out = f(hidden)", "f(hidden)"), "MulBackward0", 1)
WRITE = Event(What.CHANGED, place(3, 4, "hidden += 1"), "add_", 2, SEEN)
NEEDS = Event(What.FAILED, place(3, 9, "loss.backward()"), certainty=SEEN)
OLD = "out = f(hidden)\n# a comment\nhidden += 1\nloss = out.sum()\n\nloss.backward()\n"
CLONE = Rewrite(
    "clone",
    (Edit(3, None, OLD, OLD.replace("hidden += 1", "hidden = hidden.clone()\nhidden += 1")),),
    Safety.SAME_GRADIENTS,
    outcome=Outcome.VERIFIED,
    reason=Reason("agrees"),
    comparison=Comparison(("w.grad", "b.grad"), 2.4e-7),
)


def tried(outcome: Outcome, key: str, safety: Safety, **values: str) -> Rewrite:
    return Rewrite("detach", CLONE.edits, safety, outcome=outcome, reason=Reason(key, values))


def overwritten() -> Explanation:
    return explanation(finding(SAVED, WRITE, NEEDS), CLONE, notes=(Reason("recorded_next"),))


def drawn() -> Explanation:
    """With the graph from the culprit to the loss, in two branches."""
    lines = (
        GraphLine(SAVED.place, (), ("w", "b")),
        GraphLine(place(3, 3, "twice = out * 2"), (0,)),
        GraphLine(WRITE.place),
        GraphLine(place(3, 5, "both = out + twice"), (0, 1), ("layers.0.weight", "v"), 6),
        GraphLine(None, (3,), count=7),
        GraphLine(place(3, 8, "loss = both.sum()"), (4,)),
    )
    return explanation(finding(SAVED, WRITE, NEEDS), CLONE, graph=lines)


def leaf_written() -> Explanation:
    """The guilty line is the failing line; no versions are involved."""
    line = place(2, 5, "weight[mask] = 0.0", "weight[mask]")
    events = (Event(What.CAUSE, line, "index_put_"), Event(What.FAILED, line, certainty=SEEN))
    found = finding(
        *events, tensor=culprit("weight", None, 0), facts=facts("weight", "weight[mask] = 0.0")
    )
    return explanation(found, tried(Outcome.NOT_TRIED, "not_checked", Safety.SAME_GRADIENTS))


def write_refused() -> Explanation:
    """Called through a helper, refused at the write: the failing line is the guilty line."""
    chain = (place(4, 2, "step(params)"), place(2, 8, "update(p)", function="step"))
    line = place(2, 3, "p -= lr * p.grad", function="update")
    events = (
        Event(What.CREATED, place(2, 2, "g = p.grad", function="update"), chain=chain),
        Event(What.CHANGED, line, "sub_", None, SEEN, chain),
        Event(What.FAILED, line, certainty=SEEN, chain=chain),
    )
    found = finding(*events, tensor=culprit("p", None, 0), facts=facts("p", "p -= lr * p.grad"))
    rewrite = tried(Outcome.RUNS, "no_reference", Safety.SAME_GRADIENTS, why="no_gradient")
    failing = tried(
        Outcome.FAILS, "fails_with", Safety.SAME_GRADIENTS, error="E", cell="3", line="4"
    )
    return explanation(found, rewrite, failing, notes=(Reason("limit_compiled"),))


def no_places() -> Explanation:
    events = (
        Event(What.SAVED, None, "MulBackward0", 1),
        Event(What.CHANGED, None, None, 3),
        Event(What.FAILED, None),
    )
    return explanation(finding(*events, tensor=culprit("", 1, 3)))


def in_files() -> Explanation:
    file = r"C:\work\training\a_module_with_a_rather_long_name.py"
    write = place(None, 114, "self.hidden.mul_(decay)", "mul_(decay)", file, "step")
    chain = (
        place(4, 12, "train(model)"),
        place(None, 9, "model.step()", "", "/home/u/train.py", "train"),
    )
    event = Event(What.CHANGED, write, "mul_", 2, SEEN, chain)
    edit = Edit(
        None,
        file,
        "a\nb\nself.hidden.mul_(decay)\n",
        "a\nb\nself.hidden = self.hidden.mul(decay)\n",
    )
    rewrite = Rewrite("clone", (edit, CLONE.edits[0]), Safety.SAME_GRADIENTS)
    return explanation(finding(SAVED, event, NEEDS), rewrite)


def hostile() -> Explanation:
    """Markup of every kind, in names, code, message and file name."""
    name = "</code><script>alert(1)</script>"
    code = (
        "x[mask] = '[bold]{tensor}[/bold]' + `**y**` # <b>&amp;</b> \x1b[31mred\x1b[0m \u202eback"
    )
    found = finding(
        SAVED,
        Event(What.CHANGED, place(3, 4, code), "<op>", 2),
        Event(
            What.FAILED, place(None, 1, "loss.backward()", "", "<img src=x onerror=alert(1)>.py")
        ),
        tensor=culprit(name),
        facts=facts(name, code, "``` {saver} | _a_ __h__ *"),
    )
    edit = Edit(3, None, code, "</table><script>\n```\n[/bold]")
    rewrite = Rewrite(
        "clone",
        (edit,),
        Safety.SAME_GRADIENTS,
        outcome=Outcome.FAILS,
        reason=Reason("fails_with", {"error": "<i>[red]`"}),
    )
    return explanation(found, rewrite, message="<script>[link=x]\x1b[2J```\n" + MESSAGE)


def long_lines() -> Explanation:
    source = "result = " + " + ".join(f"some_long_function_name_{i}(hidden)" for i in range(12))
    part = "some_long_function_name_9(hidden)"
    events = (
        Event(What.SAVED, place(3, 2, source, part), "MulBackward0", 1),
        Event(What.CHANGED, place(3, 104, source), "add_", 2),
        NEEDS,
    )
    edit = Edit(3, None, source, "\n".join(f"{source} + {i}" for i in range(30)))
    rewrite = Rewrite("clone", (edit,), Safety.SAME_GRADIENTS)
    return explanation(finding(*events, facts=facts("hidden", source, source)), rewrite)


def cjk_names() -> Explanation:
    write = "隠れ状態[マスク] = 値の平均を計算する関数(入力データ, 重み)"
    events = (
        Event(What.SAVED, place(3, 2, "出力 = 層(隠れ状態)", "層(隠れ状態)"), "MulBackward0", 1),
        Event(What.CHANGED, place(3, 4, write, "隠れ状態[マスク]"), "index_put_", 2, SEEN),
        NEEDS,
    )
    found = finding(
        *events, tensor=culprit("隠れ状態"), facts=facts("隠れ状態", write, "出力 = 层(变量)")
    )
    return explanation(found, CLONE)


def silent() -> Explanation:
    """A write that bumped no version."""
    events = (
        SAVED,
        Event(What.CHANGED, place(3, 4, "hidden.data.add_(1)"), "add_", 1, SEEN),
        NEEDS,
    )
    found = finding(*events, tensor=culprit(current=1), variant="quiet")
    return explanation(found, CLONE, kind=Kind.SILENT, message="")


def warning() -> Explanation:
    line = place(5, 1, "print(hidden.grad)", "hidden.grad")
    events = (
        Event(What.CREATED, place(2, 3, "hidden = f(x)"), "MulBackward0"),
        Event(What.CAUSE, line),
        Event(What.FAILED, line),
    )
    found = finding(*events, tensor=culprit(saved=None, current=0))
    return explanation(found, kind=Kind.WARNING, message="The .grad attribute of a Tensor …")


def every_outcome() -> Explanation:
    return explanation(
        finding(SAVED, WRITE, NEEDS),
        tried(Outcome.RUNS, "no_reference", Safety.SAME_GRADIENTS),
        tried(Outcome.DIFFERS, "differs", Safety.CHANGES_MEANING, names="w.grad"),
        tried(Outcome.FAILS, "fails_with", Safety.SAME_GRADIENTS, error="RuntimeError: no"),
        tried(Outcome.NOT_TRIED, "needs_network", Safety.SAME_GRADIENTS, what="huggingface.co"),
        tried(Outcome.NOT_TRIED, "some_new_reason", Safety.SHOW_ONLY),
    )


def missing_facts() -> Explanation:
    return explanation(finding(NEEDS, facts={"tensor": "hidden", "saver": ""}, tensors=()))


def many_writes() -> Explanation:
    writes = [
        Event(What.CHANGED, place(3, 4 + i, f"hidden[{i}] = {i}"), "copy_", 2 + i, SEEN)
        for i in range(6)
    ]
    return explanation(finding(SAVED, *writes, NEEDS, tensor=culprit(current=7)), CLONE)


SAMPLES = {
    make.__name__: make
    for make in (
        overwritten,
        drawn,
        leaf_written,
        write_refused,
        no_places,
        in_files,
        hostile,
        long_lines,
        cjk_names,
        silent,
        warning,
        every_outcome,
        missing_facts,
        many_writes,
    )
}


def graph_looked_at() -> GraphPicture:
    """A repeated block, an overwritten value, rows left out, a line with two rows."""
    layer = place(2, 7, "return h + self.down(torch.relu(self.up(self.norm(h))))")
    rows = (
        GraphRow((Operation("Addmm"),), ("encoder.weight",), place=place(3, 1, "h = encoder(x)")),
        GraphRow((), times=48, repeats=2),
        GraphRow(
            (Operation("Addmm"), Operation("Relu")),
            ("blocks[0…47].up.weight", "blocks[0…47].up.bias"),
            (0,),
            layer,
        ),
        GraphRow((Operation("Add", ("h 48/48",)),), (), (0, 2), layer),
        GraphRow((), inputs=(3,), left_out=1_234),
        GraphRow(
            (Operation("Sigmoid"),),
            inputs=(4,),
            place=place(3, 4, "<b>gate</b> = torch.sigmoid(h)"),
            overwritten=(Overwritten("result", 0, 1, (place(3, 5, "gate[mask] = 0.5"),)),),
        ),
        GraphRow((Operation("Mean", ("loss",)),), inputs=(3, 5), freed=True, asked=True),
    )
    report = GraphReport("loss", rows, 12_345, 678, 12, 1, False, "h", 4)
    return GraphPicture(report, Certainty.INFERRED)


def tensors_looked_at() -> TensorTable:
    reports = (
        TensorReport("w", "float32", "[2, 3]", "cpu", True, 0, True, "", None, None),
        TensorReport("row", "float32", "[3]", "cuda:0", True, 3, None, None, None, ("x",)),
        TensorReport(
            "model.layers[0].weight", "float32", "[9]", "cpu", True, 1, True, "", "[9]", None
        ),
        TensorReport("t", "float32", "[2]", "cpu", False, None, True, "", None, None),
    )
    sharers = (
        Sharer(("x", "outs[0]"), 0, 3),
        Sharer(("row",), 0, 3, view_of=("x",)),
        Sharer(("x_data",), 1, 0),
        Sharer(("given",), None, 0),
        Sharer(("array",), None, None, True),
    )
    return TensorTable(reports, (Memory(sharers, 24_000, True),))


LOOKS = {"graph_looked_at": graph_looked_at(), "tensors_looked_at": tensors_looked_at()}
