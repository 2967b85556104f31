"""Attribution without a recording: what the source that ran and the live objects tell."""

from .inferred_history import InferredHistory

__all__ = ["InferredHistory"]
