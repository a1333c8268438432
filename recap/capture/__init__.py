"""Observers: whatever says that a turn used a block, turned into observations of the graph."""
