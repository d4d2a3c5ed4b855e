// Makes elements. Every text becomes a text node, so nothing that an agent wrote is interpreted as HTML.

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export function notice(text) {
  const place = document.getElementById("notice");
  place.textContent = text;
  clearTimeout(notice.timer);
  notice.timer = setTimeout(() => (place.textContent = ""), 8000);
}

// A button that is disabled while its action runs, and shows why the action failed.
export function button(text, action, kind = "") {
  const made = element("button", { type: "button", class: kind, onclick: run }, text);
  async function run() {
    made.disabled = true;
    try {
      await action();
    } catch (error) {
      notice(error.message);
    } finally {
      made.disabled = false;
    }
  }
  return made;
}
