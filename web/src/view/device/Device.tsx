/** This device: its notices, the page as an app, its offline copy, the way to a phone, and who is signed in. */

import { useCallback, useEffect, useState } from "react";
import { copySize, clearCopy } from "../../offline/copy";
import { canKeep, installable, isWanted, want } from "../../offline/keeper";
import { dayAndClock } from "../../measures";
import { text } from "../../text";
import { device as words } from "../../text.device";
import { CheckField } from "../frame/Fields";
import { ScreenFrame } from "../frame/ScreenFrame";
import type { ScreenProps } from "../screens";
import { usePick, useStore } from "../store";
import { isMuted, mute, NOTICE_KINDS, permission, showNotice, switchNotices } from "../waiting/notify";
import { Phone } from "./Phone";
import { Section } from "./Section";
import "../../style/device.css";

export default function Device({ listShown, onShowList }: ScreenProps) {
  return (
    <ScreenFrame heading={text.screens.device} lead={words.lead} listShown={listShown} onShowList={onShowList}>
      <Notices />
      <Phone />
      <App />
      <Copy />
      <SignedIn />
    </ScreenFrame>
  );
}

function Notices() {
  const [now, setNow] = useState(permission);
  const [muted, setMuted] = useState(() => NOTICE_KINDS.filter(isMuted));
  const blocked = now === "denied" || now === "missing";
  return (
    <Section heading={words.notices}>
      <p className="card-words">{words.noticesLead}</p>
      <CheckField
        label={words.notify}
        hint={now === "on" ? undefined : words.states[now]}
        checked={now === "on"}
        disabled={blocked}
        onChange={(on) => void switchNotices(on).then(setNow)}
      />
      <div className="device-kinds">
        {NOTICE_KINDS.map((kind) => (
          <CheckField
            key={kind}
            label={words.kinds[kind][0]}
            hint={words.kinds[kind][1]}
            checked={!muted.includes(kind)}
            disabled={now !== "on"}
            onChange={(on) => {
              mute(kind, !on);
              setMuted(NOTICE_KINDS.filter(isMuted));
            }}
          />
        ))}
      </div>
      {now === "on" && (
        <div className="card-bar">
          <button type="button" className="button small" onClick={() => showNotice(words.trial, "trial", "/device", () => undefined)}>
            {words.try}
          </button>
        </div>
      )}
    </Section>
  );
}

const STANDALONE = "(display-mode: standalone)";

function App() {
  const [offer, setOffer] = useState(() => installable.offer);
  const [done, setDone] = useState(() => matchMedia(STANDALONE).matches);
  useEffect(() => installable.listen(() => setOffer(installable.offer)), []);
  const state = done ? "installed" : offer ? "ready" : !isSecureContext ? "insecure" : /iPhone|iPad/.test(navigator.userAgent) ? "apple" : "menu";
  const install = async (): Promise<void> => {
    if ((await installable.ask()) === "accepted") setDone(true);
  };
  return (
    <Section heading={words.app}>
      <p className="card-words">{words.appStates[state]}</p>
      {state === "ready" && (
        <div className="card-bar">
          <button type="button" className="button small" onClick={() => void install()}>
            {words.install}
          </button>
        </div>
      )}
    </Section>
  );
}

/** The keeper writes every few seconds while something happens. */
const LOOK_MS = 3_000;

type Kept = { savedAt: number; conversations: number } | null;

function Copy() {
  const possible = canKeep();
  const [wanted, setWanted] = useState(isWanted);
  const [kept, setKept] = useState<Kept>(null);
  const look = useCallback(() => void copySize().then(setKept, () => setKept(null)), []);
  useEffect(() => {
    look();
    const timer = setInterval(look, LOOK_MS);
    return () => clearInterval(timer);
  }, [look]);
  return (
    <Section heading={words.copy}>
      <p className="card-words">{words.copyLead}</p>
      <CheckField
        label={words.copyOn}
        hint={possible ? undefined : words.copyMissing}
        checked={possible && wanted}
        disabled={!possible}
        onChange={(on) => {
          setWanted(on);
          void want(on).then(look, look);
        }}
      />
      <div className="card-bar">
        <p className="card-quiet" role="status">
          {kept === null ? words.copyNone : words.copyState(kept.conversations, dayAndClock(kept.savedAt, Date.now()))}
        </p>
        {kept !== null && (
          <button type="button" className="button small" onClick={() => void clearCopy().then(look, look)}>
            {words.copyRemove}
          </button>
        )}
      </div>
    </Section>
  );
}

function SignedIn() {
  const store = useStore();
  const session = usePick((snapshot) => snapshot.session.session);
  if (session === null) return null;
  return (
    <Section heading={words.session}>
      <p className="card-words">
        {words.who(session.user ?? "", session.role ?? session.roles.join(", "))}
        <br />
        {words.server(session.server, session.version)}
      </p>
      <div className="card-bar">
        <button type="button" className="button small" onClick={() => void store.signOut()}>
          {words.signOut}
        </button>
      </div>
    </Section>
  );
}
