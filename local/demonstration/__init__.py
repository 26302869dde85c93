"""The main job on real input: one push queue, four subscribers that behave differently, every claim checked."""
