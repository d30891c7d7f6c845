"""The reading pages: search and read records and papers in a browser, without JavaScript."""
