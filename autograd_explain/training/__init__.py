"""Callbacks for libraries that run the training loop: the recorder, on for some of its steps."""
