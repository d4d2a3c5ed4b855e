// All teams: the members that work and wait, and what waits for the person.

import { read } from "/api.js";
import { element } from "/dom.js";

export async function overview(session) {
  if (session.kind === "approve-only") return [element("p", {}, "This login only answers requests.")];
  const teams = await read("/teams");
  if (teams.length === 0) {
    return [element("p", {}, "No team is running. Start one with ", element("code", {}, "brigade up"), ".")];
  }
  return [element("h2", {}, "Teams"), element("ul", { class: "cards" }, teams.map(card))];
}

function card(team) {
  const count = (state) => team.members.filter((member) => member.liveness === state).length;
  const numbers = [
    [count("working"), "working"],
    [count("waiting"), "waiting"],
    [count("dead"), "not running"],
  ].filter(([number]) => number > 0);
  const tokens = team.members.reduce((sum, member) => sum + member.tokens[0] + member.tokens[1], 0);
  const cost = team.members.reduce((sum, member) => sum + (member.cost || 0), 0);
  return element(
    "li",
    { class: "card" },
    element("h3", {}, element("a", { href: `#/team/${encodeURIComponent(team.team)}` }, team.team)),
    element("p", {}, `${team.members.length} members`, numbers.map(([number, text]) => `, ${number} ${text}`)),
    element("p", { class: "faint" }, `${team.tasks.done} of ${team.tasks.total} tasks done`),
    element("p", { class: "faint" }, `${tokens.toLocaleString()} tokens`, cost > 0 ? `, $${cost.toFixed(2)}` : ""),
    team.attention.map((item) => element("p", { class: "waiting" }, item.text)),
  );
}
