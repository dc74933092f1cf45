"""Pictures of what the parameters of a study do, by a model of its trials."""
