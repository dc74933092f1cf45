"""The performance model: learns from measurements on all machines and predicts machines where nothing has run."""
