/** How freely the agent may act in this conversation. Applies from its next step; the server holds and enforces it. */

import { text } from "../../text";
import { Icon } from "../controls/Icon";
import { Menu } from "../controls/Menu";
import { useStore } from "../store";

// Full access is not offered here: it takes a flag of the server and a decision of its own.
export const MODES = ["ask", "plan", "accept_edits", "auto"] as const;

export function modeOf(params: object): string {
  const mode = (params as Record<string, unknown>)["mode"];
  return typeof mode === "string" ? mode : "ask";
}

export function Mode({ id, params }: { id: string; params: object }) {
  const store = useStore();
  return <ModeMenu mode={modeOf(params)} onChoose={(mode) => store.command(id, { type: "set_params", patch: { mode } })} />;
}

export function ModeMenu({ mode, onChoose }: { mode: string; onChoose: (mode: string) => void }) {
  const name = text.composer.modes[mode] ?? mode;
  return (
    <Menu
      label={`${text.composer.mode}: ${name}`}
      className="button quiet small mode"
      actions={MODES.map((one) => ({
        label: text.composer.modes[one] ?? one,
        ...(one === mode ? { icon: "check" as const } : {}),
        onSelect: () => onChoose(one),
      }))}
    >
      <Icon name="shield" />
      <span>{name}</span>
    </Menu>
  );
}
