"""What was observed: modes and their items, label alphabets, weighted labelled observations."""

from gingham.data.sample import Alphabet, Bounds, Features, Mode, Moments, OneHot, Sample

__all__ = ["Alphabet", "Bounds", "Features", "Mode", "Moments", "OneHot", "Sample"]
