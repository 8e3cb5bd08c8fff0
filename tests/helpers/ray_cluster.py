"""A Ray cluster of two nodes on loopback: two raylets with a core, a cache and nothing else in common."""

import contextlib
import importlib.util
import os

import pytest

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="ray is not installed; `make test-cluster` installs it"
)


@contextlib.contextmanager
def two_nodes(directory):
    """The cluster and its second node; both end with the block."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's own 15 lets everything else on a busy machine go first
    import ray
    from ray.cluster_utils import Cluster

    def node(name):
        return {
            "num_cpus": 1,
            "object_store_memory": 150_000_000,
            "env_vars": {"SIDEQUEST_CACHE": str(directory / f"cache-of-{name}")},
        }

    cluster = Cluster(initialize_head=True, head_node_args={**node("head"), "include_dashboard": False})
    try:
        second = cluster.add_node(**node("second"))
        cluster.wait_for_nodes(timeout=60)
        yield cluster, second
    finally:
        ray.shutdown()
        cluster.shutdown()
