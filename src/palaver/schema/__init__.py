"""The contracts, and nothing that behaves: ids, content, commands, events, the folded view, errors on the wire.

Everything else imports from here; this package imports nothing of Palaver.
"""
