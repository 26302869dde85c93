"""What a function's role allows: decided as IAM decides it, asked by the function's own process."""
