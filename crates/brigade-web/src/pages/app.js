// The page: logs in, shows the view that the address names, and draws it again when something happens.

import { follow, logIn } from "/api.js";
import { element, notice } from "/dom.js";
import { overview } from "/overview.js";
import { team } from "/team.js";

const main = document.getElementById("main");
const REDRAW_MS = 100;
let session = null;
let isDrawing = false;
let isStale = false;

function route() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decodeURIComponent);
  return parts[0] === "team" && parts[1] ? () => team(session, parts[1]) : () => overview(session);
}

// Draws the view. Keeps the text that the person is writing and the element that has the focus.
async function draw() {
  if (isDrawing) {
    isStale = true;
    return;
  }
  isDrawing = true;
  try {
    const view = await route()();
    const written = document.activeElement;
    const isWriting = main.contains(written) && /^(INPUT|TEXTAREA)$/.test(written.tagName) && written.value;
    if (!isWriting) {
      const id = main.contains(written) ? written.id : "";
      main.replaceChildren(...view);
      if (id) document.getElementById(id)?.focus();
    }
  } catch (error) {
    if (error.status === 401) showLogin(error.message);
    else notice(error.message);
  } finally {
    isDrawing = false;
    if (isStale) {
      isStale = false;
      setTimeout(draw, REDRAW_MS);
    }
  }
}

function showLogin(why) {
  main.replaceChildren(
    element("h2", {}, "Not logged in"),
    element("p", {}, why),
    element("p", {}, "Run ", element("code", {}, "brigade web link"), " and open the address that it prints."),
  );
}

async function start() {
  try {
    session = await logIn();
  } catch (error) {
    document.getElementById("connection").textContent = "";
    showLogin(error.message);
    return;
  }
  let timer = null;
  const soon = () => {
    timer ??= setTimeout(() => {
      timer = null;
      draw();
    }, REDRAW_MS / 2);
  };
  follow(soon, (state) => (document.getElementById("connection").textContent = state));
  addEventListener("hashchange", () => {
    draw();
    main.focus();
  });
  await draw();
}

start();
