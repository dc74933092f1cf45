"""How well is predicted where nothing, or little, has run, and what studies gain by it."""
