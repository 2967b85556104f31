"""Turns the user's source into its twin: the same program with every operation behind a hook.

The twin is what the walk executes on stand-ins.  No call, attribute, operator, import or
iteration of it happens without one of the `_ag_…` hooks of `hooks.py` agreeing to it, so that
nothing outside the walk can be reached.  Python's own control flow, scopes, classes and
generators stay as they are.
"""

from .compile import LIBRARY_TWIN, TWIN, Twins

__all__ = ["LIBRARY_TWIN", "TWIN", "Twins"]
