"""A dozen short papers to try the paper tools on, as a snapshot that is the same every time.

All texts below this package, their translations and summaries included, were written for this
project and are given to the public domain under CC0 1.0. Subjects are real, authors, venues and
institutions are invented, and DOIs use 10.5555, the prefix reserved for examples.
"""

from service.demo.papers.snapshot import write, write_once

__all__ = ["write", "write_once"]
