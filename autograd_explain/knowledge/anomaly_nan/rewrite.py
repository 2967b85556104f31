"""The repair inside the operation, as where nothing was raised."""

from autograd_explain.knowledge.derivative_not_finite.diagnose import Details
from autograd_explain.knowledge.derivative_not_finite.rewrite import propose as inside_operation
from autograd_explain.rewrite import Propose

propose: Propose[Details] = inside_operation
