"""The process that parses untrusted files, and the code with which an import controls it."""
