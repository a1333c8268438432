"""Sessions in, canonical messages out; and back. ``formats.open_log`` is the way in for files."""
