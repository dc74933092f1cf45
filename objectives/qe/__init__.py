"""pw.x of Quantum ESPRESSO."""
