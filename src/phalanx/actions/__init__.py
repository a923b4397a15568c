"""The steps of a session, one file each."""
