"""The rules of template.yaml, as tests: what a reviewer would otherwise have to check by eye."""
