"""What people see in a browser: server-rendered pages, with no build step and nothing foreign."""
