"""What has a say in a session, one file each."""
