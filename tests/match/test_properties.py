"""Whatever stands in the holes of a message comes out as its captures."""

from __future__ import annotations

import pytest
from filling import fill
from hypothesis import given, settings
from hypothesis import strategies as st

from autograd_explain.match import match_message
from autograd_explain.match.table import rows

TYPES = st.sampled_from(
    ["torch.FloatTensor", "torch.cuda.HalfTensor", "CUDABFloat16Type", "torch.sparse.DoubleTensor"]
)
SHAPES = st.lists(st.integers(0, 99999), max_size=5).map(str)
OPS = st.sampled_from(
    ["Relu", "TBackward", "AsStridedBackward0", "torch::autograd::CopySlices", "Fill3", "Net.Act"]
) | st.from_regex(r"\A[A-Z][A-Za-z0-9_]{0,30}\Z")
NUMBERS = st.integers(0, 10**12).map(str)
NAMES = st.from_regex(r"\A[a-z_][a-z0-9_]{0,12}(\.[a-z0-9_]{1,8}){0,3}\Z")
DTYPES = st.sampled_from(["Float", "Double", "Half", "BFloat16", "ComplexFloat", "Long"])
DEVICES = st.sampled_from(["cpu", "cuda", "cuda:0", "cuda:17", "mps:0", "xpu"])
CLASSES = st.sampled_from(["<class 'torch.Tensor'>", "int", "list", "numpy.ndarray", "NoneType"])
AROUND = st.sampled_from(["", "RuntimeError: ", "[rank3]: RuntimeError: ", "step 3 failed: "])
BEHIND = st.sampled_from(["", "\nException raised from x", " (see above)", "\n\n", "\r\n  x.y"])

CASES = {
    "inplace-version-mismatch": {
        "type": TYPES, "shape": SHAPES, "output": NUMBERS, "op": OPS, "version": NUMBERS,
        "expected": NUMBERS,
    },
    "inplace-version-mismatch-leaf-anomaly": {
        "type": TYPES, "shape": SHAPES, "version": NUMBERS, "expected": NUMBERS,
    },
    "view-multi-output-inplace": {"output": NUMBERS, "op": OPS},
    "no-grad-fn": {"index": NUMBERS},
    "unused-input": {"index": NUMBERS},
    "parameter-assign-tensor": {"type": NAMES, "parameter": NAMES},
    "grad-output-shape-mismatch": {
        "index": NUMBERS, "shape": SHAPES.map(lambda s: f"torch.Size({s})"),
        "output_index": NUMBERS, "expected": SHAPES.map(lambda s: f"torch.Size({s})"),
    },
    "invalid-gradient-shape": {"op": OPS, "index": NUMBERS, "shape": SHAPES, "expected": SHAPES},
    "invalid-gradient-device": {"op": OPS, "index": NUMBERS, "expected": DEVICES,
                                "device": DEVICES},
    "found-dtype": {"dtype": DTYPES, "expected": DTYPES},
    "numpy-other-device": {"device": DEVICES},
    "grad-assign-size": {"shape": SHAPES, "expected": SHAPES},
    "function-wrong-number-of-gradients": {"function": OPS, "expected": NUMBERS, "count": NUMBERS},
    "node-hook-wrong-count": {"hook": NAMES, "count": NUMBERS, "expected": NUMBERS},
    "hook-changes-type": {"hook": NAMES, "expected": TYPES, "type": TYPES},
    "anomaly-nan": {"op": OPS, "output": NUMBERS},
    "derivative-not-implemented": {"op": OPS},
    "checkpoint-different-number-of-tensors": {"expected": NUMBERS, "count": NUMBERS},
    "optimizer-param-not-tensor": {"type": CLASSES},
    "grad-output-wrong-type": {"type": CLASSES},
    "ddp-prior-iteration-unused": {"rank": NUMBERS, "indices": SHAPES},
    "vmap-in-dims-structure": {
        "function": NAMES, "in_dims": st.sampled_from(["0", "(0, None)"]), "structure": NAMES,
        "input_structure": NAMES,
    },
}  # fmt: skip


@pytest.mark.parametrize("id", CASES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_values_come_out_again(id: str, data: st.DataObject) -> None:
    values = {name: data.draw(strategy, label=name) for name, strategy in CASES[id].items()}
    before, behind = data.draw(AROUND), data.draw(BEHIND)
    template = rows()[id]["message"]
    if id == "found-dtype" or template.endswith(("}", ".")):
        behind = behind if behind.startswith(("\n", "\r")) else ""
    if id == "found-dtype" and not before.startswith(("Runtime", "[")):
        before = ""
    match = match_message(before + fill(template, values) + behind)
    assert match is not None
    assert id in {match.pattern, *match.siblings}
    assert match.captures == values


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    match_message(text)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_beginning_of_a_message_is_that_message_or_nothing(data: st.DataObject) -> None:
    row = data.draw(st.sampled_from(list(rows().values())))
    whole = fill(row["message"])
    match = match_message(whole[: data.draw(st.integers(0, len(whole)))])
    if match is not None:
        assert match.family == row["family"] or shares_its_beginning(match.pattern, whole)


def shares_its_beginning(id: str, whole: str) -> bool:
    """Another row's text begins alike, so that nothing but the rest could tell them apart."""
    texts = [rows()[id]["message"], *(o["message"] for o in rows()[id].get("older", ()))]
    return any(fill(text)[:20] == whole[:20] for text in texts)
