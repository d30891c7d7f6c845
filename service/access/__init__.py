"""Who may read what: tokens, grants, packages, and the checks of a request's headers."""
