"""An invented person's year and a dozen papers, for trying out Rung."""
