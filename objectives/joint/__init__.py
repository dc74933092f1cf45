"""What several plans of one program have in common: inputs of a mix, and places that the program comes from."""
