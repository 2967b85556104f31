"""Sessions as those of the verifier's tests."""

from verification.conftest import play

__all__ = ["play"]
