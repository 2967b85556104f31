"""Programs as rows: a notebook (cells split by `# %%`), the cause, its variant, and a line that the
first rewrite brings in ("" where none is honest)."""

from __future__ import annotations

from . import graphs, optimizers, tensors, writes

PROGRAMS = {**graphs.PROGRAMS, **writes.PROGRAMS, **optimizers.PROGRAMS, **tensors.PROGRAMS}
