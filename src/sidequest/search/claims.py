"""Who is at which trial, where several processes share one search through a database.

A claim is a row with a lease that its holder renews while it lives. A process that is killed, or cut off, renews nothing: its
claims run out, and another process takes them. So no trial is run twice at a time, and none is lost.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from typing import Any

from sidequest.errors import SettingsError
from sidequest.methods.base import Plan
from sidequest.search.ledger import Ledger
from sidequest.search.storage import bad_storage, database_url
from sidequest.search.trials import TrialResult

LEASE = 60.0  # seconds without a sign of life after which a claim is anybody's
LEASE_VARIABLE = "SIDEQUEST_LEASE"

LONGEST_LEASE = 86_400.0

_CLOCKS = {"postgresql": "SELECT extract(epoch FROM clock_timestamp())", "mysql": "SELECT unix_timestamp(now(3))"}


def lease_asked_for() -> float:
    asked = os.environ.get(LEASE_VARIABLE) or str(LEASE)
    try:
        seconds = float(asked)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= LONGEST_LEASE:
        raise SettingsError(f"{LEASE_VARIABLE}: seconds from 1 to {LONGEST_LEASE:.0f}, found {asked[:40]!r}")
    return seconds


class Claims:
    """Keeps `search.parallel_trials.Shared` and `TrialListener` over a database and the ledger in it."""

    def __init__(self, url: str, study: str, ledger: Ledger, lease: float | None = None) -> None:
        import sqlalchemy as sql

        self._sql, self._study, self._ledger = sql, study, ledger
        self._lease = lease_asked_for() if lease is None else lease
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        columns = [
            sql.Column("study", sql.String(255), primary_key=True),
            sql.Column("key", sql.String(64), primary_key=True),
        ]
        columns += [sql.Column("owner", sql.String(255)), sql.Column("until", sql.Double)]
        self._table = sql.Table("sidequest_claims", sql.MetaData(), *columns)
        try:
            self._engine = sql.create_engine(database_url(url), pool_pre_ping=True)
            self._table.create(self._engine, checkfirst=True)
        except sql.exc.OperationalError as error:
            raise bad_storage(url, error) from None
        except sql.exc.ProgrammingError:
            pass  # another process made the table at the same moment
        except sql.exc.IntegrityError:
            pass
        self._held: set[str] = set()
        self._closed = threading.Event()
        self._renewing = threading.Thread(target=self._renew_for_ever, daemon=True)
        self._renewing.start()

    def result(self, key: str) -> TrialResult | None:
        return self._ledger.result(key)

    def claim(self, key: str) -> bool:
        sql, table = self._sql, self._table
        row = {"study": self._study, "key": key}
        this_trial = sql.and_(table.c.study == self._study, table.c.key == key)
        try:
            with self._engine.begin() as connection:
                now = self._now(connection)
                connection.execute(table.delete().where(this_trial, table.c.until < now))
                connection.execute(table.insert().values(**row, owner=self._owner, until=now + self._lease))
        except (sql.exc.IntegrityError, sql.exc.OperationalError):  # somebody else has it, or is at the table
            return False
        self._held.add(key)
        if self._ledger.result(key) is not None:  # it ended between the look and the claim
            self._release(key)
            return False
        return True

    def begun(self, plan: Plan, key: str) -> None:
        pass

    def ended(self, plan: Plan, key: str, result: TrialResult) -> None:
        self._release(key)

    def failed(self, plan: Plan, key: str) -> None:
        self._release(key)

    def close(self) -> None:
        self._closed.set()
        self._renewing.join(self._lease)
        self._engine.dispose()

    def _release(self, key: str) -> None:
        if key not in self._held:
            return
        self._held.discard(key)
        table = self._table
        with self._engine.begin() as connection:
            own_claim = (table.c.study == self._study, table.c.key == key, table.c.owner == self._owner)
            connection.execute(table.delete().where(*own_claim))

    def _renew_for_ever(self) -> None:
        table = self._table
        while not self._closed.wait(self._lease / 4):
            if not self._held:
                continue
            try:
                with self._engine.begin() as connection:
                    until = self._now(connection) + self._lease
                    connection.execute(table.update().where(table.c.owner == self._owner).values(until=until))
            except self._sql.exc.SQLAlchemyError:
                continue  # the database does not answer: the next time

    def _now(self, connection: Any) -> float:
        """By the database's clock: those of the machines may differ."""
        clock = _CLOCKS.get(connection.dialect.name)
        return time.time() if clock is None else float(connection.execute(self._sql.text(clock)).scalar())
