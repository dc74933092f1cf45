"""The routes of the service, a module for each thing that they are about."""
