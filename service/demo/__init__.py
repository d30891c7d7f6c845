"""An invented person's year and thirteen papers, for trying out Rung."""
