"""Sessions as those of the verifier's tests."""

from verify.conftest import play

__all__ = ["play"]
