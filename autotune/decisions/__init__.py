"""Decision tables: what to use in which cell, as stored runs say it."""
