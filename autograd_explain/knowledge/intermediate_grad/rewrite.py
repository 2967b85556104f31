"""Ask for the gradient before backward runs."""

from autograd_explain.rewrite.engine.fixes import Fix, Propose, by_table
from autograd_explain.rewrite.transforms.keep_gradient import retained

propose: Propose[object] = by_table(Fix("retain_grad", lambda s: retained(s.program, s.finding)))
