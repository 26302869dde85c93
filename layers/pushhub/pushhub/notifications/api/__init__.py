"""The REST routes of Notifications 2.0."""
