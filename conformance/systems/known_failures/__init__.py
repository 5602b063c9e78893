"""What is known to fail, a file a system: beside these modules for the profiles that ship.

A listed requirement that fails is ``known`` in each scenario in which it fails, and fails no run. One that was judged
and failed nowhere is ``stale``: the list is out of date, exit status 3. One that was skipped, not judged, or judged
only in part is neither. ``form`` reads such a file, ``text`` writes one; ``conformance.gauge.known`` applies it.
"""
