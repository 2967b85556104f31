"""Mistakes that raise nothing, noticed while recording."""
