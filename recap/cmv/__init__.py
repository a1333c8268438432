"""Sessions as version-controlled state: transcripts trimmed without losing a word of conversation."""
