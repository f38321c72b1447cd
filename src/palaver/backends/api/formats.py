"""The wire formats that are spoken here without help, by what a provider's `kind` calls them."""

from palaver.backends.api.anthropic import MESSAGES
from palaver.backends.api.openai import CHAT_COMPLETIONS
from palaver.backends.api.responses import RESPONSES

FORMATS = {format.name: format for format in (MESSAGES, CHAT_COMPLETIONS, RESPONSES)}
