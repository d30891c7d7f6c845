"""Builds the demo's papers from their texts.

All texts below this package, their translations and summaries included, were written for this
project and are given to the public domain under CC0 1.0. Subjects are real, authors, venues and
institutions are invented, and DOIs use 10.5555, the prefix reserved for examples.
"""
