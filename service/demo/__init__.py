"""Invented records and public changelogs, to try the store on."""
