"""Peers that serve the same search over the same file, each in its own environment.

Their modules import only the standard library and what their environment contains.
"""
