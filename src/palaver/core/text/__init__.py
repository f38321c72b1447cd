"""Text functions of the core: hidden characters, approval texts, line diffs, structured answers. Pure."""
