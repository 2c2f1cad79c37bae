"""Planted data with known answers, and loaders for public sets."""
