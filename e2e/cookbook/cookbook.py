"""Runs every recipe of the page, prints a table, and checks the number of commands: at least 60 recipes, at most 4 commands
for each, and at most 2 for the median."""

import os
import shutil
import statistics
import sys
import tempfile
import time
import traceback
from contextlib import ExitStack
from pathlib import Path

import approvals  # noqa: F401  each of these modules registers checks
import clean_up  # noqa: F401
import mail  # noqa: F401
import members  # noqa: F401
import scripts
import start  # noqa: F401
import steer  # noqa: F401
import tasks  # noqa: F401
import watch  # noqa: F401
from homes import Homes
from recipes import CHECKS, RecipeRun, read_recipes

from lib.env import exit_on_sigterm
from lib.report import Report
from lib.script_proxy import ScriptProxy
from lib.scripted_model import ScriptedModel, shutdown_steps

MIN_RECIPES, MAX_COMMANDS, MAX_MEDIAN = 60, 4, 2
# The steps that the scripted model takes when it receives a text of the page, or the request to stop.
SCRIPTS = {"Answer with the tool answer_shutdown.": shutdown_steps(native=False)} | scripts.TEXTS


def run_recipe(recipe, homes, exchange):
    """Runs one recipe; returns the seconds of its commands, the seconds with preparation and check, and an error, which is
    None if the recipe passed."""
    started = time.monotonic()
    run = RecipeRun(recipe, exchange)
    try:
        CHECKS[recipe.title](run, homes)
        run.finish()
        error = None
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"
        homes.reset()
        if os.environ.get("SHOW"):
            traceback.print_exc()
    homes.close(all=False)
    if error or os.environ.get("SHOW"):
        print(*(f"    | {line}" for part in run.output for line in part.splitlines()), sep="\n")
    return run.seconds, time.monotonic() - started, error


def main():
    exit_on_sigterm()
    exchange = "--exchange" in sys.argv
    report = Report("cookbook, agents exchanged" if exchange else "cookbook")
    recipes = read_recipes(Path(os.environ["PAGE"]))
    only = os.environ["ONLY"]
    if not only:
        unchecked = [recipe.title for recipe in recipes if recipe.title not in CHECKS]
        report.check("each recipe has a check", not unchecked, unchecked)
        stale = set(CHECKS) - {recipe.title for recipe in recipes}
        report.check("each check has a recipe", not stale, stale)
    root = Path(tempfile.mkdtemp(prefix="cookbook-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        model = stack.enter_context(ScriptedModel(root / "model"))
        proxy = stack.enter_context(ScriptProxy(model.url, SCRIPTS))
        homes = Homes(root, model, proxy.url, exchange)
        stack.callback(homes.close)
        print(f"      {'recipe':64}{'commands':>8}{'seconds':>9}{'with check':>12}", flush=True)
        ran = [recipe for recipe in recipes if only in recipe.title and recipe.title in CHECKS]
        for recipe in ran:
            seconds, whole, error = run_recipe(recipe, homes, exchange)
            row = f"{recipe.title:64}{recipe.count():8}{seconds:9.1f}{whole:12.1f}"
            report.check(row, error is None, f"line {recipe.line}: {error}")
    counts = [recipe.count() for recipe in recipes]
    report.figure("recipes", len(counts))
    report.figure("commands", f"median {statistics.median(counts):g}, maximum {max(counts)}")
    report.check(f"the page has at least {MIN_RECIPES} recipes", len(counts) >= MIN_RECIPES, len(counts))
    report.check(f"no recipe has more than {MAX_COMMANDS} commands", max(counts) <= MAX_COMMANDS, max(counts))
    report.check(f"the median is at most {MAX_MEDIAN}", statistics.median(counts) <= MAX_MEDIAN)
    sys.exit(report.end())


main()
