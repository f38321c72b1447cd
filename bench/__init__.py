"""The numbers Palaver promises, measured. One file a number; each is a ratio against a floor of the same run where one exists."""
