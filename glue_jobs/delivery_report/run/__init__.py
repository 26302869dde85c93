"""What one run was asked for, that it runs alone, how far it is, and the Spark it runs on."""
