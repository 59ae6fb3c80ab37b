"""Static figures for papers."""
