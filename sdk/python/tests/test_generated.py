"""The blocking package is what the asyncio package says."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

import blocking  # noqa: E402


class Generated(unittest.TestCase):
    def test_the_blocking_package_is_up_to_date(self) -> None:
        for name, text in blocking.modules().items():
            self.assertEqual((blocking.TARGET / name).read_text("utf-8"), text, f"{name}: run tools/blocking.py")
        self.assertEqual({path.name for path in blocking.TARGET.glob("*.py")}, set(blocking.modules()))


if __name__ == "__main__":
    unittest.main()
