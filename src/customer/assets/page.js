// What changes by itself on the dashboard. Every view works without this file.
"use strict";

const byId = (id) => document.getElementById(id);

// A one-time link carries its token behind the #, which is never sent. It goes into the form and out of the address bar.
const enter = byId("enter");
if (enter && location.hash.length > 1) {
  byId("token").value = decodeURIComponent(location.hash.slice(1));
  byId("token-row").hidden = true;
  history.replaceState(null, "", location.pathname);
  enter.querySelector("button").focus();
}

// So does a new key's page at the shop. Nobody is signed in without pressing the button.
const login = document.querySelector('form[action="/dashboard/login"]');
if (login && location.hash.startsWith("#key=")) {
  login.querySelector("#key").value = decodeURIComponent(location.hash.slice(5));
  history.replaceState(null, "", location.pathname);
  login.querySelector("button").focus();
}

// Newer parts of the view come from the server as HTML that its templates have escaped.
const content = byId("content");
if (content && content.dataset.live) {
  const source = new EventSource(content.dataset.live);
  source.addEventListener("parts", (event) => {
    const { title, parts } = JSON.parse(event.data);
    document.title = title;
    for (const [id, html] of Object.entries(parts)) replace(byId(id), html);
  });
  // A break is mended by the browser; a refusal is not.
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 10000);
  });
  source.addEventListener("over", () => { source.close(); location.reload(); });
}

function replace(place, html) {
  if (!place) return;
  const before = [...place.querySelectorAll(".money")].map((money) => money.textContent);
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  const probe = document.createElement("div");
  probe.append(fresh.content);
  if (probe.innerHTML === place.innerHTML) return;
  const focused = place.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  place.replaceChildren(...probe.childNodes);
  [...place.querySelectorAll("dd .money, .ranges .money")].forEach((money, at) => {
    if (before[at] !== undefined && before[at] !== money.textContent) money.classList.add("moved");
  });
  if (focused) place.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus();
}

// Settings: copy buttons, and the pasted key filled in. It is kept in this page only.
// Browsers give no clipboard to pages without encryption, except on this machine.
for (const figure of navigator.clipboard ? document.querySelectorAll("figure") : []) {
  const button = document.createElement("button");
  button.className = "copy";
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy ${figure.querySelector("pre").getAttribute("aria-label")}`);
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(figure.querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  figure.append(button);
}

// The list of programs follows what is typed. One of those that are shown is always unfolded.
const find = byId("find");
if (find) {
  const list = document.querySelector(".programs");
  const programs = [...list.children];
  const plain = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "");
  const filter = () => {
    const words = find.value.split(/\s+/).map(plain);
    const fits = programs.filter((program) => words.every((word) => plain(program.dataset.name).includes(word)));
    const shown = fits.length ? fits : programs;
    for (const program of programs) program.hidden = !shown.includes(program);
    if (!shown.some((program) => program.open)) shown[0].open = true;
    const count = shown.length < programs.length ? `${shown.length} of ${programs.length}` : programs.length;
    byId("found").textContent = fits.length ? `${count} programs` : list.dataset.none;
  };
  find.addEventListener("input", filter);
  // The list is there already, and a key that was pasted would be lost with the page.
  find.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
  // Another model is shown in the same program.
  byId("find-program").addEventListener("formdata", ({ formData }) => {
    const open = programs.find((program) => program.open);
    if (open) formData.set("program", open.lastElementChild.id);
  });
}

const test = byId("key-test");
if (test) {
  const field = byId("key");
  const places = [...document.querySelectorAll(".key")];
  const placeholder = places[0]?.textContent;
  field.addEventListener("input", () => {
    for (const place of places) place.textContent = field.value.trim() || placeholder;
  });
  test.addEventListener("submit", async (event) => {
    const key = field.value.trim();
    if (!key) return;
    event.preventDefault();
    const result = byId("key-result");
    const say = (good, text) => { result.className = good ? "success" : "problem"; result.textContent = text; };
    try {
      const answer = await fetch("/v1/models", { headers: { authorization: `Bearer ${key}` } });
      const body = await answer.json();
      if (answer.ok) say(true, `200: the key and the base URL are right. Models it may use: ${body.data.length}.`);
      else say(false, `${answer.status}: ${body.error.message}`);
    } catch {
      say(false, "The gateway did not answer.");
    }
  });
}
