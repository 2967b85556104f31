"""The same repairs as for a write to the leaf itself."""

from autograd_explain.knowledge.leaf_written.rewrite import propose

__all__ = ["propose"]
