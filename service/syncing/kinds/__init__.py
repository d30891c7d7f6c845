"""The kinds of sources, one module each; `service.syncing.syncing` lists them."""
