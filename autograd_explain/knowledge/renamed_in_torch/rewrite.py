"""The present name."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table

from .diagnose import Details


def _new_name(site: Site[Details]) -> Edits | None:
    call, first = site.call, site.details.first
    if call is None:
        return None
    given = [site.code(a) for a in (*call.args, *call.keywords)]
    arguments = f"({', '.join([first, *given] if first else given)})"
    return site.replaced(f"{{{site.details.name}}}{{arguments}}", arguments=arguments)


propose: Propose[Details] = by_table(Fix("new_name", _new_name))
