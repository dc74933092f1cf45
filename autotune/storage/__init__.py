"""Storage: studies, runs, leases and imported measurements in SQLite or PostgreSQL."""
