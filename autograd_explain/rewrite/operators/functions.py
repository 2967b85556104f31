"""Functions: what a library offers instead of one."""

from __future__ import annotations

from collections.abc import Iterator

from ..transforms.library_offers import recorded_instead
from .site import Change, Site


def recorded_function(site: Site) -> Iterator[Change]:
    """`odeint_adjoint(f, x)` -> `odeint(f, x)`: its operations are recorded."""
    for other, make in recorded_instead(site.program, site.place):
        yield site.change("recorded_instead", other, make, group=other)
