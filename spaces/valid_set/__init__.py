"""The set of valid configurations: counted, listed, sampled and explored without trying."""
