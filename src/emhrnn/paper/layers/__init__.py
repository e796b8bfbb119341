"""Layers of the paper's networks: attention, forests of the E-step."""
