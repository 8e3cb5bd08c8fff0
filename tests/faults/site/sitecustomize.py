"""On `PYTHONPATH`, this puts the tracer into every fresh Python process that has a plan, workers included."""

import importlib.util
import os
from pathlib import Path

if os.environ.get("SIDEQUEST_TEST_PLAN"):
    spec = importlib.util.spec_from_file_location("sidequest_test_tracer", Path(__file__).parents[1] / "tracer.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.install_from_environment()
