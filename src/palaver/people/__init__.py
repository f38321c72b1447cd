"""Who is asking: tokens, browser sign-ins, and the roles that they hold."""
