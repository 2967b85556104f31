"""no_grad instead of inference mode, or a clone where the tensor comes back to autograd."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.clone import clone_before_write

from .diagnose import Details


def _no_grad(site: Site[Details]) -> Edits | None:
    """`torch.inference_mode()` -> `torch.no_grad()`; not where a flag decides."""
    call = site.call
    decides = call is not None and (call.args or call.keywords)
    return None if decides else site.replaced("{owner}.no_grad()")


def _clone(site: Site[Details]) -> Edits | None:
    use = site.details.use
    if use is None:
        return None
    if site.details.written:
        return clone_before_write(site.program, use, site.details.tensor)
    names = site.details.together
    if len(names) < 2:
        return site.at(use, *site.details.others).called("clone")
    copies = ", ".join(f"{name}.clone()" for name in names)
    return site.at(use).before(f"{', '.join(names)} = {copies}")


propose: Propose[Details] = by_table(
    Fix("no_grad", _no_grad, when=lambda d: d.mode),
    Fix("clone", _clone, when=lambda d: not d.flagged),
)
