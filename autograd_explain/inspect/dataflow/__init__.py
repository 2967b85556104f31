"""Walking the source that ran backwards: from an expression to what made its value."""

from .cut_kinds import CutKind
from .expression import ExprAt, Scope
from .failing_expression import failing_spots
from .grad_mode import Off, OffBy, switches
from .gradient_trace import Cut, GradientTrace, GradientTracer, best_cut
from .reaching_definitions import Each, How
from .slicer import Slicer

__all__ = [
    "Cut",
    "CutKind",
    "Each",
    "ExprAt",
    "GradientTrace",
    "GradientTracer",
    "How",
    "Off",
    "OffBy",
    "Scope",
    "Slicer",
    "best_cut",
    "failing_spots",
    "switches",
]
