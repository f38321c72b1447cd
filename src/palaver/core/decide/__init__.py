"""What each family of commands comes to. Pure; `core/decide/decide.py` asks the one a command belongs to."""
