"""Where objects live: the shape of the API server, embedded or real."""
