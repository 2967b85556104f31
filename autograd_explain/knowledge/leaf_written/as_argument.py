"""A computed value used in the place of a parameter that cannot be written to."""

from __future__ import annotations

from autograd_explain.inspect.facts.leaf_write import LeafWriteDetails
from autograd_explain.knowledge.silent_cut.functional_update import functional_update
from autograd_explain.rewrite import Edits, Site
from autograd_explain.rewrite.transforms.functional_layer import parameter_as_argument


def as_argument(site: Site[LeafWriteDetails]) -> Edits | None:
    """`self.fc.weight.copy_(w)`, `self.fc(x)` -> the layer called with `w`; the same of a copied
    model whose parameters a loop writes.  None where the numbers are those of a leaf: these are
    meant to be copied."""
    if not site.details.computed:
        return None
    found = parameter_as_argument(site.program, site.place)
    return found or functional_update(site.program, site.place, None)
