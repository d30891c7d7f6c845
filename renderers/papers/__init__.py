"""Readings of papers as text."""
