"""Runs commands in forked children: heavy packages are imported once, so a run costs what it does and no more.

A request is a line of JSON on standard input: `arguments` of the command line, `environment`, `folder` to work in, `output` (a
file), `plan` of the tracer, and `fork_workers`: whether worker processes are forked too instead of being started afresh. The
answer is a line with the exit code (negative: the signal), and whether any process of the command was left running.

The server itself computes nothing, so that a child is as good as a fresh process.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import multiprocessing
import os
import signal
import sys
import time
import traceback
from typing import Any

IMPORTED = (
    "torch",
    "transformers.models.bert.modeling_bert",
    "optuna",
    "scipy.stats",
    "sklearn.linear_model",
    "pyarrow.parquet",
    "cmaes",
    "jinja2",
    "sidequest.cli",
    "sidequest.api.calls",
    "sidequest.report.page",
    "sidequest.report.quality",
    "sidequest.runs.comparing",
    "sidequest.runs.exports",
    "sidequest.runs.final_model",
    "sidequest.runs.oracle",
    "sidequest.runs.scoring",
    "sidequest.runs.tuning",
    "sidequest.learning.torch.learner",
    "sidequest.learning.torch.powers",
    "sidequest.models.convnet",
    "sidequest.models.hf",
    "sidequest.models.pooled",
    "sidequest.models.saved",
    "typer._adapters",
)
LIMIT = 600.0  # seconds for one command, on a machine that does much else too
PATIENCE = 10.0  # seconds for the workers of a killed process to end
PR_SET_CHILD_SUBREAPER = 36


def serve() -> None:
    """Answer requests until standard input ends."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # workers of a killed process are reaped here
    for name in IMPORTED:
        importlib.import_module(name)
    from sidequest.cli import _all_commands
    from sidequest.methods.registry import METHODS, get_method
    from sidequest.search.code_version import selection_code_version, training_code_version

    training_code_version()  # parses all modules: half of a small run's time, and kept for the children
    selection_code_version()
    _all_commands()  # likewise: the options of every command, and every method's settings
    for name in METHODS:
        get_method(name)
    gc.freeze()  # a child that collects garbage would copy the memory of all these modules
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), file=answers, flush=True)


def run(request: dict[str, Any]) -> dict[str, Any]:
    child = os.fork()
    if child == 0:
        be(request)
    code, deadline = None, time.monotonic() + LIMIT
    while code is None:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            code = os.waitstatus_to_exitcode(status)
        elif time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
        else:
            time.sleep(0.002)
    return {"code": code, "left": left_running(child)}


def left_running(group: int) -> bool:
    """Whether processes of a command that has ended are still there after a while; they are killed then."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return False
        if time.monotonic() > deadline:
            os.killpg(group, signal.SIGKILL)
            return True
        time.sleep(0.005)


def be(request: dict[str, Any]) -> None:
    """In the child: become the command."""
    code = 70
    try:
        os.setsid()
        output = os.open(request["output"], os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o666)
        for handle, target in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (output, 2)):
            os.dup2(handle, target)
        os.environ.update(request["environment"])
        os.chdir(request["folder"])
        if request.get("fork_workers"):
            original = multiprocessing.get_context
            multiprocessing.get_context = lambda method=None: original("fork")  # type: ignore[assignment,misc]
        from tests.faults.tracer import Tracer

        if request.get("plan"):
            Tracer(**request["plan"]).install()
        for patch in request.get("planted", []):
            module, _, function = patch.partition(":")
            getattr(importlib.import_module(module), function)()
        sys.argv = ["sidequest", *request["arguments"]]
        from sidequest.cli import main

        main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
