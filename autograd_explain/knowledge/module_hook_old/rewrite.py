"""`register_full_backward_hook` instead of the old method."""

from autograd_explain.program import called_name
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table


def _full_hook(site: Site[object]) -> Edits | None:
    old = called_name(site.node)
    new = old.replace("backward", "full_backward")
    return site.replaced(f"{{owner}}.{new}{{arguments}}")


propose: Propose[object] = by_table(Fix("full_hook", _full_hook, changes=True))
