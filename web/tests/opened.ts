/** A store in a world of one conversation, and what happens in it. */

import { openStore, type OpenConversation, type Store } from "../src/model/store";
import { World } from "./world";

export const STARTED = { type: "turn.started", turn: "t", agent: "ada", backend: "b", trigger: { kind: "message" } };
export const ANSWER = { type: "answer.started", turn: "t", message: "m" };
export const delta = (text: string) => ({ type: "text.delta", turn: "t", message: "m", block: 0, text });
export const said = (message: string) => ({ type: "message.added", message, content: [{ type: "text", text: message }] });

export async function opened(prepare: (world: World) => void = () => {}): Promise<{ world: World; store: Store }> {
  const world = new World();
  world.logs.set("c", []);
  world.append("c", { type: "conversation.created", title: "Talk" });
  prepare(world);
  const store = openStore(world);
  store.start();
  await world.settle();
  return { world, store };
}

export function view(store: Store, id = "c"): OpenConversation {
  const open = store.getSnapshot().open.get(id);
  if (open === undefined) throw new Error(`${id} is not open`);
  return open;
}
