"""What several tests share: tiny models, suites with a known answer, run directories. Data files of tests are beside them."""

from pathlib import Path

ROOT = Path(__file__).parents[2]  # of the repository
