"""Every common and occasional message that a CPU can raise: raised, recognised, captured."""

from __future__ import annotations

import traceback
import warnings

import pytest
from programs import NOT_HERE, PROGRAMS, Program

from autograd_explain.match import Match, find_messages, match_message, rows

EXPECTED = {row["id"] for row in rows().values() if row["likelihood"] != "rare"}


def test_every_common_and_occasional_row_has_a_program_or_a_reason() -> None:
    written = {program.id for program in PROGRAMS}
    assert written | set(NOT_HERE) >= EXPECTED, sorted(EXPECTED - written - set(NOT_HERE))
    assert not written & set(NOT_HERE)


#: Programs that do not raise the message yet, or whose message is not yet captured as told.
NOT_YET = {
    "checkpoint-selective-not-found-not_found",
    "compile-donated-buffers-compiled_with_retain",
    "complex-output-not-supported-complex_output",
    "dataparallel-gather-scalars-gather",
    "ddp-bucket-view-strides-strides",
    "ddp-device-ids-device_ids",
    "ddp-find-unused-but-none-no_unused",
    "ddp-marked-ready-twice-ready_twice",
    "ddp-prior-iteration-outputs-outputs",
    "derivative-not-implemented-no_derivative",
    "forward-ad-inplace-not-implemented-no_forward_derivative_inplace",
    "found-dtype-loss_dtype",
    "function-gradient-for-non-tensor-gradient_for_number",
    "function-legacy-attribute-attribute_of_instance",
    "functorch-inplace-captured-captured",
    "grad-assign-dtype-assign_grad_dtype",
    "grad-assign-not-tensor-assign_grad_number",
    "grad-layout-contract-layout",
    "gradcheck-not-reentrant-check_random",
    "inference-set-version-counter-data_of_inference",
    "metadata-change-not-allowed-resize_data",
    "module-hook-output-not-tensor-output_not_tensor",
    "once-differentiable-twice-once_differentiable",
    "optimizer-fused-unsupported-fused",
    "optimizer-param-not-tensor-names_instead",
    "uninitialized-parameter-lazy",
    "vmap-inplace-inplace_vmap",
}


def name_of(program: Program) -> str:
    return f"{program.id}-{program.run.__name__}"


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(
            p, marks=pytest.mark.xfail(strict=False) if name_of(p) in NOT_YET else (), id=name_of(p)
        )
        for p in PROGRAMS
    ],
)
def test_program(program: Program, capfd: pytest.CaptureFixture[str]) -> None:
    match = OBSERVE[program.kind](program, capfd)
    assert match is not None
    assert program.id in (match.pattern, *match.siblings)
    assert match.torch == ""
    assert {name: match.captures.get(name) for name in program.captures} == program.captures


def error(program: Program, capfd: pytest.CaptureFixture[str]) -> Match | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as caught:
            program.run()
    source = next(
        frame.line or ""
        for frame in reversed(traceback.extract_tb(caught.tb))
        if "programs" in frame.filename
    )
    return match_message(str(caught.value), source=source)


def warning(program: Program, capfd: pytest.CaptureFixture[str]) -> Match | None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            program.run()
        except RuntimeError:
            if program.id not in ("anomaly-traceback", "anomaly-no-forward-info"):
                raise
    found = [match_message(str(w.message)) for w in caught]
    return next((m for m in found if m and program.id in (m.pattern, *m.siblings)), None)


def stderr(program: Program, capfd: pytest.CaptureFixture[str]) -> Match | None:
    program.run()
    found = find_messages(capfd.readouterr().err)
    return next((m for m in found if program.id in (m.pattern, *m.siblings)), None)


OBSERVE = {"error": error, "warning": warning, "stderr": stderr}
