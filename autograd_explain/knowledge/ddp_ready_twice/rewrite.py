"""`use_reentrant=False` in every checkpoint."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.uncut import apply_patches, keyword_added

from .diagnose import Details


def _non_reentrant(site: Site[Details]) -> Edits | None:
    places = site.details.checkpoints
    groups = [keyword_added(site.program, at, "use_reentrant", "False") for at in places]
    return apply_patches(p for group in groups for p in group)


propose: Propose[Details] = by_table(Fix("non_reentrant", _non_reentrant))
