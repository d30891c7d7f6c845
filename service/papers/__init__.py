"""The paper library: a deepresearch-flow snapshot and its static assets, read-only."""
