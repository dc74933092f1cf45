"""Several storages put together in one."""
