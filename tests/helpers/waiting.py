"""How long tests wait for something that should happen soon."""

#: Only a failing test waits this long, because shared machines can be slow. It is less than
#: the time limit of a test, so that a helper reports what it waited for.
WAIT_SECONDS = 90
