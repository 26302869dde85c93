"""What operators do on AWS: the deployed stack, its rights, checks before and after a deployment, keys, tables."""
