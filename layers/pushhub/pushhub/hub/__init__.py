"""The Spree hub protocol (v5): JSON messages, answers that can carry new messages, polling."""
