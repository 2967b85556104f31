"""What must be noted while a cell runs, in check mode only: who saved, who wrote."""

from .recording import Recording, watch
from .signal import Signal

__all__ = ["Recording", "Signal", "watch"]
