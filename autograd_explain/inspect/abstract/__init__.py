"""Attribution without a recording: what the source that ran and the live objects tell."""

from .history import AbstractHistory

__all__ = ["AbstractHistory"]
