"""The records of a client according to its responses, compared with the stored records."""

from dataclasses import dataclass, field

ABSENT = None


@dataclass
class Change:
    """The change of a record by a request: the complete record, or the values in the request."""

    before: dict | None
    after: dict | None


@dataclass
class Journal:
    """The records of one client, as last acknowledged.

    Attributes:
        records: the last response for each existing record, by its key.
        in_flight: the changes of each request without a response, by the keys of the records.
    """

    records: dict = field(default_factory=dict)
    in_flight: list = field(default_factory=list)
    acknowledged: int = 0

    def acknowledge(self, answers):
        """Store the responses for some records, or ABSENT for deleted records."""
        self.acknowledged += 1
        for key, record in answers.items():
            if record is ABSENT:
                self.records.pop(key, None)
            else:
                self.records[key] = record

    def lose(self, wanted):
        """Note that the outcome of a request is unknown.

        Args:
            wanted: for each record the values in the request, or ABSENT for a deletion.
        """
        self.in_flight.append(
            {key: Change(self.records.get(key, ABSENT), after) for key, after in wanted.items()}
        )

    def open_keys(self):
        """Return the keys of the records with an unknown outcome until the next comparison."""
        return {key for changes in self.in_flight for key in changes}

    def compare(self, stored):
        """Return the differences between the store and the journal, and clear the requests in flight.

        Args:
            stored: all stored records of this client, by their keys.

        Returns:
            The problems, and the number of requests in flight that were processed.
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
        """Update a record with an unknown outcome from the store."""
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
    # Only the sent values of a new record without a response are known. All other values of an
    # updated record, except the times of the update and of a confirmation, are known, too.
    for name in ("updated_at", "confirmed_at"):
        same.pop(name, None)
    return "after" if same.items() <= stored.items() else "neither"
