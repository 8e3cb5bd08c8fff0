"""`auto`: the method to use when you do not know which. Read `auto`, then `arms`, `rounds` and `decision`."""
