"""Static pictures of results."""
