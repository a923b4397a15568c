"""Groups the pods of workloads: which PodGroup a pod belongs to, and what that group needs, follows from the pod's owners."""
