"""Splits: a function of the group alone, in known shares."""

from collections import Counter

from concur.builders.folder import CORPUS, find_samples, read_sample
from concur.splits import SALT, SPLITS, split_of


def test_known_groups_stay_where_they_are() -> None:
    # A change here moves published rows between splits.
    assert SALT == "concur-splits-23"
    expected = {"gemm": "train", "softmax": "validation", "argmax": "test"}
    assert {group: split_of(group) for group in expected} == expected


def test_shares_are_80_10_10() -> None:
    counts = Counter(split_of(f"group {number}") for number in range(20_000))
    shares = [counts[split] / 20_000 for split in SPLITS]
    assert [round(share, 2) for share in shares] == [0.8, 0.1, 0.1]


def test_the_corpus_has_solutions_and_attempts_in_every_split() -> None:
    solutions: Counter[str] = Counter()
    attempts: Counter[str] = Counter()
    for path in find_samples(CORPUS):
        sample = read_sample(path).sample
        assert sample is not None, path
        split = split_of(sample.task.provenance.group)
        solutions[split] += len(sample.solutions)
        attempts[split] += len(sample.trajectories)
    assert set(solutions) == set(attempts) == set(SPLITS)
    assert min(solutions.values()) > 0 and min(attempts.values()) > 0
