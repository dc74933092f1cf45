"""Fixtures of all tests of supervision."""

from tests.autotune.supervision.services import real_service, service

__all__ = ["real_service", "service"]
