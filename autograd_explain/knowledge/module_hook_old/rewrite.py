"""`register_full_backward_hook` instead of the old method."""

from autograd_explain.program import called_name
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced
from autograd_explain.rewrite.transforms.uncut import node_at


def _full_hook(site: Site[object]) -> Edits | None:
    old = called_name(node_at(site.program, site.place))
    new = old.replace("backward", "full_backward")
    return expression_replaced(site.program, site.place, f"{{owner}}.{new}{{arguments}}")


propose: Propose[object] = by_table(Fix("full_hook", _full_hook, changes=True))
