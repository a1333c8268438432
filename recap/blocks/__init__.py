"""Blocks: the atomic pieces of history, their identifiers, and the table selection works on."""
