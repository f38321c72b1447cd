"""The agents of a server, and what runs them."""
