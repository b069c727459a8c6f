"""What clients were told about their records, and whether the store agrees."""

from dataclasses import dataclass, field

ABSENT = None


@dataclass
class Change:
    """What one request would make of a record: all of it, or what the request says of it."""

    before: dict | None
    after: dict | None


@dataclass
class Journal:
    """The records of one client: each is as it was last acknowledged.

    Attributes:
        records: what the service answered for each record that is there, by its key.
        in_flight: the changes of each request without an answer, by the keys of the records.
    """

    records: dict = field(default_factory=dict)
    in_flight: list = field(default_factory=list)
    acknowledged: int = 0

    def acknowledge(self, answers):
        """Keep what the service answered for some records; ABSENT for those that are gone."""
        self.acknowledged += 1
        for key, record in answers.items():
            if record is ABSENT:
                self.records.pop(key, None)
            else:
                self.records[key] = record

    def lose(self, wanted):
        """Note that nobody knows whether a request was carried out.

        Args:
            wanted: for each record what the request sent, or ABSENT for a deletion.
        """
        self.in_flight.append(
            {key: Change(self.records.get(key, ABSENT), after) for key, after in wanted.items()}
        )

    def open_keys(self):
        """Return the keys of the records whose fate is open until the next comparison."""
        return {key for changes in self.in_flight for key in changes}

    def compare(self, stored):
        """Return how the store differs from the journal, and forget what was in flight.

        Args:
            stored: all records of this client that the store has, by their keys.

        Returns:
            the problems, and how many requests in flight turned out to be carried out.
        """
        problems, done = [], 0
        for changes in self.in_flight:
            outcomes = {_outcome(change, stored.get(key)) for key, change in changes.items()}
            if len(outcomes) > 1 or "neither" in outcomes:
                seen = {key: stored.get(key) for key in changes}
                problems.append(f"half-written: {changes} is {seen}")
            done += outcomes == {"after"}
            for key in changes:
                self.settle(key, stored.get(key))
        self.in_flight = []
        problems += [
            f"{key}: acknowledged {self.records.get(key)}, stored {stored.get(key)}"
            for key in self.records.keys() | stored.keys()
            if self.records.get(key) != stored.get(key)
        ]
        self.records = dict(stored)
        return problems, done

    def settle(self, key, record):
        """Take over what the store has of a record whose fate was open."""
        if record is ABSENT:
            self.records.pop(key, None)
        else:
            self.records[key] = record


def _outcome(change, stored):
    if stored == change.before:
        return "before"
    if stored is ABSENT or change.after is ABSENT:
        return "after" if stored is change.after else "neither"
    kept = change.before or {}
    same = {**kept, **change.after}
    # Of a record that no answer showed, only what was sent is known; of an edited one also that
    # the rest is as it was, but for the moment of the edit.
    same.pop("updated_at", None)
    return "after" if same.items() <= stored.items() else "neither"
