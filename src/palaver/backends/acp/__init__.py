"""Any agent that speaks the Agent Client Protocol, named by its command in an agent record. Needs the extra `[acp]`."""
