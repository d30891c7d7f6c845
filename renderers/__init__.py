"""Typed answers to bounded text and structured content. Pure functions: no network, no store."""
