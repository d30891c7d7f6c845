"""The checks of `rung doctor`: each returns one finding, and later ones depend on earlier ones."""
