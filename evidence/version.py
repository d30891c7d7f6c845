"""The version of Rung."""

VERSION = "0.1.0"
