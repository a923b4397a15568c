"""The process on a real cluster: what it watches, who leads, what is sent, and what operators see of it."""
