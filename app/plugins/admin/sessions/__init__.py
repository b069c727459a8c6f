"""Sessions of a browser: signing in and out, and invitations (admin 1 and 5)."""
