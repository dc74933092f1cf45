"""Parameters and constraints as they are declared, and the errors of a declaration."""
