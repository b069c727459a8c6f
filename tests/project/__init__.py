"""Tests of the project itself: layers, documentation and deployment files."""
