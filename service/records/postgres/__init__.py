"""The record store on PostgreSQL."""
