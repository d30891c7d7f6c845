"""How long tests wait for something that should happen soon."""

#: Only a test that fails waits this long: shared machines are slow at odd moments. It is less than
#: the time limit of a test, so that a helper reports what it waited for.
WAIT_SECONDS = 90
