// One team: what waits for the person, and the members.

import { change, read } from "/api.js";
import { button, element, notice } from "/dom.js";

export async function team(session, name) {
  const path = `/teams/${encodeURIComponent(name)}`;
  const mayRead = session.kind !== "approve-only";
  const [state, requests] = await Promise.all([mayRead ? read(path) : null, read(`${path}/approvals`)]);
  const view = [element("p", {}, element("a", { href: "#/" }, "All teams")), element("h2", {}, `Team ${name}`)];
  view.push(element("h2", {}, requests.length ? "Requests that wait for you" : "No request waits for you"));
  view.push(element("ul", { class: "cards" }, requests.map((request) => requestCard(session, path, request))));
  if (state) {
    view.push(element("h2", {}, "Members"));
    view.push(element("ul", { class: "cards" }, state.members.map((member) => memberCard(session, path, member))));
  }
  return view;
}

function requestCard(session, path, request) {
  const place = `${path}/approvals/${request.number}`;
  const content = request.plan ?? request.command ?? JSON.stringify(request.input, null, 2);
  const reason = element("input", { id: `reason-${request.number}`, maxlength: 2000 });
  const answer = async (word, body) => {
    const given = await change(`${place}/${word}`, { request_id: request.request_id, ...body });
    notice(given.confirmed ? `Request ${request.number}: done.` : `Sent; not yet confirmed: ${given.not_yet}`);
  };
  return element(
    "li",
    { class: "card" },
    element("h3", {}, `${request.number}. ${request.from} asks`, request.kind === "plan" ? " for approval of its plan" : ""),
    request.description ? element("p", {}, request.description) : null,
    request.tool ? element("p", { class: "faint" }, request.tool, request.cwd ? ` in ${request.cwd}` : "") : null,
    element("pre", { tabindex: 0, "aria-label": "what is asked" }, content),
    session.kind === "read-only"
      ? null
      : [
          element("div", { class: "buttons" }, [
            button("Allow", () => answer("approve", {}), "main"),
            button("Deny", () => answer("deny", reason.value ? { reason: reason.value } : {})),
          ]),
          element("label", { for: reason.id }, "Reason, if you deny", reason),
        ],
  );
}

function memberCard(session, path, member) {
  const place = `${path}/members/${encodeURIComponent(member.name)}`;
  const text = element("textarea", { id: `write-${member.name}`, rows: 2, maxlength: 100000 });
  const tokens = member.tokens[0] + member.tokens[1];
  return element(
    "li",
    { class: "card" },
    element("h3", {}, member.name),
    element("p", { class: "faint" }, member.agent, member.model ? `, ${member.model}` : ""),
    element("p", { class: member.liveness }, member.words),
    member.task ? element("p", {}, `Task ${member.task.id}: ${member.task.subject}`) : null,
    element("p", { class: "faint" }, `${tokens.toLocaleString()} tokens, ${member.unread ?? "?"} unread`),
    session.kind === "full"
      ? [
          element("label", { for: text.id }, `Message to ${member.name}`, text),
          element("div", { class: "buttons" }, [
            button("Send", async () => {
              await change(`${path}/messages`, { to: member.name, text: text.value });
              text.value = "";
              notice(`Sent to ${member.name}.`);
            }, "main"),
            button("Interrupt", async () => {
              const effect = await change(`${place}/interrupt`);
              notice(`${member.name}: ${effect.result.replaceAll("_", " ")}`);
            }),
          ]),
        ]
      : null,
  );
}
