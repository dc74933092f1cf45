"""What the parameters of a study do, by a model of its trials."""
