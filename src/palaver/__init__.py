"""Palaver: a self-hosted server where people and AI agents talk, over one durable log a conversation."""

__version__ = "0.1.0"
