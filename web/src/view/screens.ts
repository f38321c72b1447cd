/**
 * The screens beside conversations, each with an address of its own and loaded when it is opened.
 *
 * To add one: a line in `screens` (its word in the address, its name in the palette and the tab, its file), the same word in
 * `SCREENS` of src/palaver/faces/http/page.py, and a file whose default export takes `ScreenProps` and draws a `ScreenFrame`. The
 * palette lists it and `fetchTheRest` fetches it by itself. Its words go to text.places.ts, its styles into a .css file that it
 * imports, its calls into transport/api.later.ts: nothing of it but this line is waited for at the first picture.
 */

import { lazy, type ComponentType } from "react";
import { text } from "../text";

export interface ScreenProps {
  /** What follows the screen's word in the address, without slashes around it; empty when nothing does. */
  rest: string;
  listShown: boolean;
  onShowList: () => void;
}

function screen(name: string, load: () => Promise<{ default: ComponentType<ScreenProps> }>) {
  return { name, load, View: lazy(load) };
}

export const screens = {
  backends: screen(text.screens.backends, () => import("./backends/Backends")),
  processes: screen(text.screens.processes, () => import("./processes/Processes")),
  import: screen(text.screens.import, () => import("./imports/Imports")),
  waiting: screen(text.screens.waiting, () => import("./waiting/Waiting")),
  agents: screen(text.screens.agents, () => import("./agents/Agents")),
  missions: screen(text.screens.missions, () => import("./missions/Missions")),
  settings: screen(text.screens.settings, () => import("./settings/DeviceSettings")),
  files: screen(text.screens.files, () => import("./files/Files")),
  conversations: screen(text.screens.conversations, () => import("./browse/Browse")),
  device: screen(text.screens.device, () => import("./device/Device")),
  inspect: screen(text.screens.inspect, () => import("./inspector/Inspector")),
};

export type ScreenName = keyof typeof screens;

export function isScreen(name: string): name is ScreenName {
  return Object.hasOwn(screens, name);
}
