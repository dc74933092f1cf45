"""What goes in and out of the service, as JSON."""
