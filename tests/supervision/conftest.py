"""Fixtures of all tests of supervision."""

from tests.supervision.services import real_service, service

__all__ = ["real_service", "service"]
