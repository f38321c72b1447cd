"""The built-in agent: a loop over OpenAI- and Anthropic-compatible services.

`loop` runs a turn, `step` one model call of it, `calls` the tools that the model asked for. `anthropic` and `openai` speak to
services through `endpoint` and `sse`; `collect` turns what they say into events.
"""
