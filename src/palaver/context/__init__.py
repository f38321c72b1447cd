"""What a model is shown: the system prompt, and the conversation as one list of messages.

Called by the API loop. Nothing here knows a provider's wire format, a clock or a log.
"""
