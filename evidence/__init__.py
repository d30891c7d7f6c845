"""The lowest layer: the shared vocabulary. It does no I/O except to read its own data files.

It defines the answers, the errors and the limits. Import each name from its own module, so that an
import loads only what it needs.
"""
