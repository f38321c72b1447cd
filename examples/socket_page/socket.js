// A chat page on the WebSocket. The address keeps the session (#session-id); without one the first message makes it.
// Escape stops the answer.

import { MessageRenderer, element } from "./renderer.js";

const log = document.getElementById("log");
const composer = document.getElementById("composer");
let sessionId = location.hash.slice(1);
let renderer;
let socket;

async function operation(name, body) {
  const init = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const { result } = await (await fetch(`/api/plugins/sessions/operations/${name}`, init)).json();
  return result;
}

// Draws the session from its stored events; live ones follow where they end.
async function open() {
  const { events, nextCursor } = await operation("events", { sessionId });
  log.replaceChildren();
  renderer = new MessageRenderer(log);
  for (const event of events) renderer.handleEvent(event);
  if (events.length === 0) log.append(element("p", "hint", "Nothing was said yet."));
  await new Promise((opened, failed) => {
    socket = new WebSocket(`${location.origin.replace("http", "ws")}/ws`);
    Object.assign(socket, { onopen: opened, onclose: failed });
  });
  socket.onmessage = ({ data }) => renderer.handleEvent(JSON.parse(data));
  socket.onclose = reopen;
  send({ type: "hello", protocolVersion: 2, subscriptions: [{ sessionId, after: nextCursor }] });
}

function reopen() {
  setTimeout(() => open().catch(reopen), 1000);
}

const send = message => socket.send(JSON.stringify(message));

composer.onsubmit = async event => {
  event.preventDefault();
  const text = composer.elements.text.value;
  composer.reset();
  if (!sessionId) {
    ({ sessionId } = await operation("create", {}));
    location.hash = sessionId;
    await open();
  }
  log.querySelector(".hint")?.remove();
  renderer.handleEvent({ type: "user_message", text });
  send({ type: "text_input", sessionId, text });
};

addEventListener("keydown", ({ key }) => {
  if (key === "Escape" && socket) send({ type: "control", action: "cancel", target: "output", sessionId });
});

if (sessionId) open().catch(reopen);
