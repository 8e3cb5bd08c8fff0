"""The parts of `benchmarks/strength.py`: its primaries, its contenders, its journal and its table."""
