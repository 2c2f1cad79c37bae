"""What was observed: modes and their items, label alphabets, weighted labelled tuples."""

from gingham.data.modes import Alphabet, Bounds, Features, Mode, Moments, OneHot
from gingham.data.sample import Sample

__all__ = ["Alphabet", "Bounds", "Features", "Mode", "Moments", "OneHot", "Sample"]
