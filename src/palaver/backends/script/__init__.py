"""Scripted agents: the steps of a script, its player, and the backend that plays it. Ships for tests and demos."""
