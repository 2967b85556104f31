"""Outside a notebook: a script or module run as `__main__`, and one's own entry points."""
