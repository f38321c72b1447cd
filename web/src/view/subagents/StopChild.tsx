/** Stops one subagent. The turn that waits for it goes on with what it was told. */

import { useState } from "react";
import { later } from "../../text.later";
import { Icon } from "../controls/Icon";
import { useStore } from "../store";

export function StopChild({ conversation, agent }: { conversation: string; agent: string }) {
  const store = useStore();
  const [stopping, setStopping] = useState(false);
  const stop = (): void => {
    setStopping(true);
    // The refusal is shown with all others; the button is there again.
    store.answered(store.command(conversation, { type: "interrupt" })).catch(() => setStopping(false));
  };
  return (
    <button type="button" className="button quiet small stop-child" aria-label={later.subagent.stop(agent)} disabled={stopping} onClick={stop}>
      <Icon name="stop" />
      {stopping ? later.subagent.stopping : later.subagent.stopShort}
    </button>
  );
}
