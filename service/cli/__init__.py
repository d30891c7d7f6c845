"""The `rung` command: readers' commands, built from the operations, and the owner's commands."""
