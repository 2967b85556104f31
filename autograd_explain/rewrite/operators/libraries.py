"""What an installed library offers beside what the program asks of it."""

from __future__ import annotations

from collections.abc import Iterator

from ..transforms.library_offers import recorded_instead, under_switch
from .site import Change, Site


def recorded_function(site: Site) -> Iterator[Change]:
    """`odeint_adjoint(f, x)` -> `odeint(f, x)`: its operations are recorded."""
    for other, make in recorded_instead(site.program, site.place):
        yield site.change("recorded_instead", other, make, other)


def library_switch(site: Site) -> Iterator[Change]:
    """A call under a switch of the library's, named for gradients, that is turned round."""
    for switch, make in under_switch(site.program, site.place):
        yield site.change("library_switch", switch, make)
