"""The feed: replay, then live, without a hole or a double, for any number of readers of any speed."""
