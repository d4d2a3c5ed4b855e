"""A real Claude Code leads other vendors' agents, which brigade runs, from their first turn to their last.

The test types nothing into a teammate's pane. Into the lead's pane, it types only what the lead's user would type.
"""

import answers
import forged_mail
import late_join
import permissions
import shutdown
import teamwork
from guest_env import GuestEnv

from lib.env import run_scenario


def scenario(env, report, short):
    env.start_lead("guest")
    lena = late_join.without_teammates(env, report)
    mates = teamwork.spawn_mates(env, report)
    for mate in mates:
        teamwork.check_no_terminal(env, report, mate)
    late_join.with_teammates(env, report, lena)
    teamwork.talk(env, report, mates)
    teamwork.native_teammate(env, report, mates[0])
    teamwork.tasks(env, report, mates)
    teamwork.interrupt(env, report, mates)
    for mate in mates[:-1]:
        permissions.permissions(env, report, mate)
        if mate.vendor in ("codex", "gemini"):
            answers.answers(env, report, mate)
    if "codex" in env.models:
        cody, rita = mates[0], mates[-1]
        permissions.plans(env, report)
        if env.version == "new":
            forged_mail.lead_mail(env, report, cody)
        forged_mail.hostile_mail(env, report, cody, rita)
    for mate in mates[:-1]:
        shutdown.refuse_then_agree(env, report, mate)
    env.check_locks(report)
    if not short:
        print(env.log_text(), flush=True)


if __name__ == "__main__":
    run_scenario(scenario, GuestEnv)
