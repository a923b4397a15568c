"""What is installed on a cluster: definitions of kinds with their rules and defaults, admission policies, roles, the deployment."""
