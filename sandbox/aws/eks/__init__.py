"""EKS's control plane as the sandbox answers it; moto's has fixed versions, no instances, no access entries.

A cluster stands for the local API server; node groups make EC2 instances. Objects are kept as the documents
AWS shows, in `Cluster`, and answered with the operations of botocore's model.
"""
