/** How freely the agent may act in this conversation. Applies from its next step; the server holds and enforces it. */

import { Suspense, useState } from "react";
import { said } from "../../sentences";
import { text } from "../../text";
import { Icon } from "../controls/Icon";
import { Menu, type MenuAction } from "../controls/Menu";
import { ask } from "../keys";
import { ConfirmFull } from "../later";
import { usePick, usePicked, useStore } from "../store";

export const MODES = ["plan", "ask", "accept_edits", "auto", "full"] as const;

export function modeOf(params: object): string {
  const mode = (params as Record<string, unknown>)["mode"];
  return typeof mode === "string" ? mode : "ask";
}

/** Whether the server lets anybody choose full access. One that does not say leaves it to be tried. */
function useFullAllowed(): boolean {
  return usePick(({ session }) => session.session?.full_enabled !== false);
}

/** Changes the mode of a conversation. A refusal is shown with all others, but for one that whoever asked shows itself. */
function useSetMode(id: string): (mode: string) => Promise<void> {
  const store = useStore();
  return async (mode) => {
    const command = store.command(id, { type: "set_params", patch: { mode } });
    try {
      await store.answered(command);
    } catch (error) {
      if (mode !== "full") return;
      store.discard(command);
      throw error;
    }
  };
}

export function Mode({ id, params }: { id: string; params: object }) {
  const setMode = useSetMode(id);
  const grants = usePicked(id, ({ state }) => state.grants.length) ?? 0;
  const more: MenuAction[] =
    grants > 0
      ? [{ label: text.modes.grants, icon: "check", end: <span className="hint tabular">{grants}</span>, onSelect: () => ask("grants") }]
      : [];
  return <ModeMenu mode={modeOf(params)} onChoose={setMode} more={more} />;
}

interface ModeMenuProps {
  mode: string;
  onChoose: (mode: string) => Promise<void> | void;
  more?: readonly MenuAction[];
}

export function ModeMenu({ mode, onChoose, more = [] }: ModeMenuProps) {
  const [confirming, setConfirming] = useState(false);
  const [refusal, setRefusal] = useState<string | null>(null);
  const name = text.composer.modes[mode] ?? mode;
  const fullAllowed = useFullAllowed();

  const giveFull = async (): Promise<void> => {
    try {
      await onChoose("full");
      setConfirming(false);
    } catch (error) {
      setRefusal(error instanceof Error && error.message ? said(error.message) : text.modes.refused);
    }
  };

  return (
    <>
      <Menu
        label={`${text.composer.mode}: ${name}`}
        className={mode === "full" ? "button quiet small mode is-bad" : "button quiet small mode"}
        align="start"
        actions={[
          ...MODES.map((one) => ({
            label: text.composer.modes[one] ?? one,
            hint: one === "full" && !fullAllowed ? text.modes.noFull : (text.modes.hints[one] ?? ""),
            checked: one === mode,
            danger: one === "full" && fullAllowed,
            disabled: one === "full" && !fullAllowed,
            onSelect: () => {
              setRefusal(null);
              if (one === "full" && mode !== "full") setConfirming(true);
              else void onChoose(one);
            },
          })),
          ...more,
        ]}
      >
        <Icon name="shield" />
        <span className="ellipsis">{name}</span>
      </Menu>
      {confirming && (
        <Suspense fallback={null}>
          <ConfirmFull refusal={refusal} onCancel={() => setConfirming(false)} onConfirm={() => void giveFull()} />
        </Suspense>
      )}
    </>
  );
}

/** What a mode means, as long as it is on, for those that are not the usual one. */
export function ModeBanner({ id }: { id: string }) {
  const setMode = useSetMode(id);
  const mode = usePicked(id, ({ state }) => modeOf(state.params)) ?? "ask";
  const fullAllowed = useFullAllowed();
  const words = mode === "full" && !fullAllowed ? text.modes.noFullBanner : text.modes.banner[mode];
  if (!words) return null;
  return (
    <div className={`mode-banner is-${mode}`} role="note" aria-label={`${text.composer.mode}: ${text.composer.modes[mode] ?? mode}`}>
      <Icon name={mode === "plan" ? "plan" : mode === "full" ? "warn" : "shield"} />
      <p>{words}</p>
      <button type="button" className="button small" onClick={() => void setMode("ask")}>
        {text.modes.leave}
      </button>
    </div>
  );
}
