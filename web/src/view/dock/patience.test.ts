import { expect, test } from "vitest";
import type { QueueItem } from "../../protocol/events.gen";
import { sayCommand } from "./patience";

const item = (command: QueueItem["command"]): QueueItem => ({ id: "i", content: [], command }) as unknown as QueueItem;

test("a command that waits says what it will do, a message says itself", () => {
  expect(sayCommand(item(null))).toBeNull();
  expect(sayCommand(item({ type: "truncate_messages", from_index: 2 }))).toBe("Then: truncate from message 3");
  expect(sayCommand(item({ type: "retry_from", index: 0, content: "x" }))).toBe("Then: try again from message 1");
  expect(sayCommand(item({ type: "edit_message", message: "m" }))).toBe("Then: edit a message");
  expect(sayCommand(item({ type: "remove_message", message: "m" }))).toBe("Then: remove a message");
  expect(sayCommand(item({ type: "regenerate" }))).toBe("Then: answer again");
  expect(sayCommand(item({ type: "fill", messages: [] }))).toBe("Then: bring in messages from elsewhere");
  expect(sayCommand(item({ type: "of a later release" }))).toBe("Then: change the history");
});
