"""One file for each stage that a gang goes through: a reading of a session in, the lines about that stage out."""
