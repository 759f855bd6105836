"""Spends its time in two functions of Python."""


def squares(limit: int) -> int:
    total = 0
    for number in range(limit):
        total += number * number
    return total


def roots(limit: int) -> float:
    total = 0.0
    for number in range(limit):
        total += number**0.5
    return total


def main() -> None:
    for _ in range(20):
        squares(200_000)
        roots(200_000)


main()
