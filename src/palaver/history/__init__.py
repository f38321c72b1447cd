"""Conversations as documents: trajectories, event lines, markdown, one page of HTML. Pure: no input, no output, no clock."""
