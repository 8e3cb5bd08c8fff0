import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "models"))  # the tiny encoders of the tests of models
