"""Sources keep a store fresh. The owner's file defines them; the store never does."""
