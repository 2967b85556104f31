"""Explains PyTorch autograd errors in notebooks."""
