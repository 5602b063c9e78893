"""What only the driver has, so that whoever counts on it on a worker is seen."""

DRIVER_ONLY = {"GAUGE_DRIVER_ONLY": "set in the driver"}
