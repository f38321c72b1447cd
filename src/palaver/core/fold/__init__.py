"""The fold: `evolve(state, event) → state` and the parts of the view that it changes. Pure."""
