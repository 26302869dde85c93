"""The Spree hub protocol (v5): JSON messages, answers that carry new ones, polling."""
