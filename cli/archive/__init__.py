"""A project's data as a whole: exported into a folder, imported, erased; and where each kind of item lies."""
