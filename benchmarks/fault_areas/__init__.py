"""Areas of the hostile test in faults.py: one function per area, each returns an Outcome."""
