"""A real Claude Code leads teammates that are none: from their first turn to their last.

Each step has a file of its own. Nothing is typed into a teammate's pane; what the lead's user would do
is done in the lead's.
"""

import sys

import forged
import goodbye
import late
import leave
import work
from guest import GuestHouse
from house import prove


def scenario(house, report, short):
    try:
        house.start_lead("walk")
        lena = late.alone(house, report)
        crew = work.arrive(house, report)
        for mate in crew:
            work.hands_off(house, report, mate)
        late.together(house, report, lena)
        work.talk(house, report, crew)
        work.plain(house, report, crew[0])
        work.tasks(house, report, crew)
        work.interrupt(house, report, crew)
        for mate in crew[:-1]:
            leave.permissions(house, report, mate)
        if "codex" in house.models:
            cody, rita = crew[0], crew[-1]
            leave.plans(house, report)
            if house.version == "new":
                forged.lead_mail(house, report, cody)
            forged.hostile(house, report, cody, rita)
        for mate in crew[:-1]:
            goodbye.shutdown(house, report, mate)
        house.check_locks(report)
        if not short:
            # What happened when, as brigade's own log tells it.
            print(house.story(), flush=True)
    finally:
        if report.failures or sys.exception():
            house.keep_traces(report)


if __name__ == "__main__":
    prove(scenario, "tmux", GuestHouse)
