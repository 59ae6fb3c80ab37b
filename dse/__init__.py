"""Design-space exploration: workloads, scheduler, prediction, sweep, reports and the ``nearmac`` command."""
