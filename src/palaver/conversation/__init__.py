"""Conversations: one owner each, who alone decides and appends; and the directory that opens, finds and rests them."""
