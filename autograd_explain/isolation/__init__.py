"""What keeps the user's session as it would be without us."""
