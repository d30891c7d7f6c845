"""The kinds of sources, one module each; `service.syncing.table` lists them."""
