"""Peers that serve the same search over the same file, each in an environment of its own.

Their modules import only the standard library and what their environment contains.
"""
