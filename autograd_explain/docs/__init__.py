"""The site: a page per cause and language, indexes by message and by symptom, and the guides.

`build(folder, …)` writes plain HTML that needs no server and no script.  Each page shows what
the extension really said when the cause's own case was run just now.  What is wrong comes back
as a list of problems: a case that is not explained, a text that lacks a section, a dead link.
"""

from .site import DocsSite, build

__all__ = ["DocsSite", "build"]
