"""The records of the demo, one invented person's year, and what packs them for it."""
