/** Reads the agent's words aloud while the conversation is open, and shows that it does: one press makes it quiet. */

import { useEffect, useRef, useState } from "react";
import { Aloud } from "../../model/aloud";
import { settings } from "../../text.settings";
import { Drawing } from "../controls/Icon";
import { useLaterApi } from "../frame/fresh";
import { usePicked } from "../store";
import { Voice } from "./voice";

const SOUND = "M3 6.3v3.4h2.2L8.5 12.5v-9L5.2 6.3zM10.8 6a3 3 0 0 1 0 4M12.6 4.2a5.5 5.5 0 0 1 0 7.6";

export default function Speaker({ id }: { id: string }) {
  const api = useLaterApi();
  const state = usePicked(id, (known) => known.state);
  const [speaking, setSpeaking] = useState(false);
  const [mute, setMute] = useState(false);
  const parts = useRef<{ aloud: Aloud; voice: Voice } | null>(null);

  useEffect(() => {
    const voice = new Voice(api, (now, spoke) => {
      setSpeaking(now);
      if (spoke !== null) setMute(spoke === "none");
    });
    parts.current = { aloud: new Aloud(), voice };
    return () => voice.close();
  }, [api]);

  useEffect(() => {
    if (!state || !parts.current) return;
    const { say, hush } = parts.current.aloud.hear(state);
    if (hush) parts.current.voice.hush();
    parts.current.voice.say(...say);
  }, [state]);

  if (mute) return <p className="aloud hint">{settings.mute}</p>;
  // There all the same, so that it can be known that it listens.
  if (!speaking) return <p className="aloud" hidden />;
  return (
    <p className="aloud">
      <Drawing path={SOUND} />
      <span>{settings.reading}</span>
      <button type="button" className="link-button" onClick={() => parts.current?.voice.hush()}>
        {settings.quiet}
      </button>
    </p>
  );
}
