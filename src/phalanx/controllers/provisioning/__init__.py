"""Nodes for whole gangs, asked for by ProvisioningRequests of Cluster Autoscaler's, in queues that say so."""
