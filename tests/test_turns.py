"""Who works when in a worker (server.py): readers of a file one after the other, but not for ever."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import server

SECONDS = 30


@pytest.fixture
def turns():
    made = server.Turns(3)
    made.patience = SECONDS
    return made


def work(turns, seen, *, reads, during=lambda: None):
    turns.begin(reads=reads)
    seen.append("begins")
    during()
    seen.append("ends")
    turns.end()


def test_readers_work_one_after_the_other(turns):
    seen = []
    with ThreadPoolExecutor(8) as pool:
        for _ in range(100):
            pool.submit(work, turns, seen, reads=True, during=lambda: time.sleep(0.0005))
    assert seen == ["begins", "ends"] * 100


def test_writers_wait_for_no_reader(turns):
    seen, done = [], threading.Event()
    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(work, turns, [], reads=True, during=lambda: done.wait(SECONDS))
        work(turns, seen, reads=False)
        done.set()
        reader.result()
    assert seen == ["begins", "ends"]


def test_slow_reader_keeps_nobody_waiting_for_long(turns):
    turns.patience = 0.05
    done = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(work, turns, [], reads=True, during=lambda: done.wait(SECONDS))
        for _ in range(3):
            work(turns, [], reads=True)
        assert not slow.done()
        done.set()
        slow.result()


def test_no_more_work_at_once_than_there_are_turns(turns):
    done, at_once, most = threading.Event(), [], []

    def note():
        at_once.append(1)
        most.append(len(at_once))
        done.wait(0.05)
        at_once.pop()

    with ThreadPoolExecutor(8) as pool:
        for _ in range(16):
            pool.submit(work, turns, [], reads=False, during=note)
    assert max(most) == 3


def test_turn_is_given_up_and_taken_again_as_it_was(turns):
    turns.begin(reads=True)
    assert turns.is_mine()
    assert turns.end() is True
    assert not turns.is_mine()
    turns.begin(reads=False)
    assert turns.end() is False


def test_client_that_reads_slowly_but_steadily_is_not_cut_off(turns, monkeypatch):
    monkeypatch.setattr(server, "_CLIENT_SECONDS", 0.5)
    ours, theirs = socket.socketpair()
    sent = b"x" * 2_000_000
    connection = server.Connection(ours, turns)
    connection.setblocking(True)
    with ours, theirs, ThreadPoolExecutor(1) as pool:
        sending = pool.submit(connection.sendall, sent)
        received = 0
        while received < len(sent):
            received += len(theirs.recv(200_000))
            time.sleep(0.1)
        sending.result()


def test_client_that_reads_nothing_is_cut_off(turns, monkeypatch):
    monkeypatch.setattr(server, "_CLIENT_SECONDS", 0.2)
    ours, theirs = socket.socketpair()
    connection = server.Connection(ours, turns)
    connection.setblocking(True)
    with ours, theirs, pytest.raises(ConnectionResetError):
        connection.sendall(b"x" * 10_000_000)
