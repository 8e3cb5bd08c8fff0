"""A bounded, seeded fuzz: sound inputs, broken at random, through everything that reads files. `make fuzz`.

Each case is a function of (seed, target, number), so one that fails can be run again alone:
`python -m tests.fuzzing --only suite --first 1234 --cases 1`.
"""
