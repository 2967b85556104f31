"""Walking the source that ran backwards: from an expression to what made its value."""

from .bindings import Each, How
from .failing import failing_spots
from .grad_mode import Off, OffBy, switches
from .gradient import Cut, GradientTracer, Trace, best_cut
from .operations import CutKind
from .spots import Scope, Spot
from .walker import Walker

__all__ = [
    "Cut",
    "CutKind",
    "Each",
    "GradientTracer",
    "How",
    "Off",
    "OffBy",
    "Scope",
    "Spot",
    "Trace",
    "Walker",
    "best_cut",
    "failing_spots",
    "switches",
]
