"""Transcripts: readers and writers of every format, and the validator of message lists and logs."""
