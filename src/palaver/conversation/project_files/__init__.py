"""Files that Palaver keeps beside a project: trajectories and the list of sessions."""
