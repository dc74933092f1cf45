"""Transfer: predict the best configurations on a machine from measurements of the same space on others."""
