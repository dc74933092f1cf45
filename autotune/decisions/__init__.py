"""Decision tables: the setting to use in each cell, from the stored runs."""
