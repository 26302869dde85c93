"""The main job on real input: one push queue, four subscribers of different manners, every claim checked."""
