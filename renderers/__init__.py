"""Turns typed answers into bounded text and structured content, without a network or a store."""
