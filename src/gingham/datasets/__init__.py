"""Planted data with known answers, and loaders for public sets."""

from gingham.datasets.graphs import PlantedGraph, load_king, planted_graph, similarities

__all__ = ["PlantedGraph", "load_king", "planted_graph", "similarities"]
