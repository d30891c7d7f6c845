"""Access control: tokens, grants, packages, and checks of request headers."""
