"""Search: samplers that propose valid configurations, our own and Optuna's."""
