"""Programs that test the service and have commands of their own (README.md)."""
