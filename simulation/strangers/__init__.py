"""Changes of the hub's code that nobody chose: made by operators, drawn by a seed, looked for by the simulator."""
