"""Which backend a rollout is dealt: in turn, from one URL or a list, each list counted for itself."""

from collections import Counter


class Dealer:
    """Held by whoever hands out rollouts, so that no backend is idle while another has two more."""

    def __init__(self) -> None:
        self._dealt: Counter[tuple[str, ...]] = Counter()

    def deal(self, backends: str | list[str]) -> str | None:
        """None, and nothing counted, where no URL is given."""
        urls = tuple(filter(None, [backends] if isinstance(backends, str) else backends))
        if not urls:
            return None
        number = self._dealt[urls]
        self._dealt[urls] += 1
        return urls[number % len(urls)].rstrip("/")
