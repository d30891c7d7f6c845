"""Turns typed answers into text and structured content of limited size; no network, no store."""
