"""The schedulers of clusters, each as pure text functions."""
