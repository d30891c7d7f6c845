"""The checks of `rung doctor`: each returns a finding, and later checks depend on earlier ones."""
