"""`use_reentrant=False`, in every checkpoint that would go on unrecorded."""

from autograd_explain.model import What
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.uncut import apply_patches, keyword_added


def _non_reentrant(site: Site[object]) -> Edits | None:
    causes = [e for e in site.finding.events if e.what is What.CAUSE]
    patches = [keyword_added(site.program, e.place, "use_reentrant", "False") for e in causes]
    return apply_patches(p for group in patches for p in group) if all(patches) else None


propose: Propose[object] = by_table(Fix("non_reentrant", _non_reentrant))
