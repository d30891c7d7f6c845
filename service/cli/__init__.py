"""The `rung` command: readers' commands made from the operations, and the owner's commands."""
