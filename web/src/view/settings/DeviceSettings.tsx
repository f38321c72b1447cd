/** The settings of this browser: looks, listening, notices, keys; and what its owner always allows, which the server keeps. */

import { useCallback, useRef, useState, type ReactNode } from "react";
import { said } from "../../sentences";
import { text } from "../../text";
import { settings } from "../../text.settings";
import { trust } from "../../text.trust";
import { asApiError } from "../../transport/api";
import type { StandingGrant } from "../../transport/api.later";
import { usePageActions } from "../actions";
import { announcesSentences, announceSentences } from "../announcer/setting";
import { visible } from "../controls/visible";
import { CheckField } from "../frame/Fields";
import { useFresh, useLaterApi } from "../frame/fresh";
import { ScreenFrame } from "../frame/ScreenFrame";
import { ScreenLink } from "../frame/ScreenLink";
import { Trouble } from "../frame/Trouble";
import type { ScreenProps } from "../screens";
import { readAloud, useReadsAloud } from "../speech/setting";
import { Voice, type Spoke } from "../speech/voice";
import { usePick, useStore } from "../store";
import { TrustedFolders } from "../trust/TrustedFolders";
import { chooseTheme, THEMES, useTheme } from "../theme";
import { chooseDensity, chooseMotion, chosenDensity, chosenMotion, DENSITIES, MOTIONS } from "./looks";

export default function DeviceSettings({ listShown, onShowList }: ScreenProps) {
  const page = usePageActions();
  const isOwner = usePick(({ session }) => session.session?.roles.includes("admin") === true);
  return (
    <ScreenFrame heading={text.screens.settings} lead={settings.lead} listShown={listShown} onShowList={onShowList}>
      <Looks />
      <Listening />
      <Section heading={settings.notices}>
        <p className="card-words">
          {settings.noticesLead} <ScreenLink to="/device">{text.screens.device}</ScreenLink>
        </p>
      </Section>
      <Policy />
      {isOwner && (
        <Section heading={trust.list}>
          <TrustedFolders />
        </Section>
      )}
      <Section heading={settings.keys}>
        <p className="card-words">{settings.keysLead}</p>
        <div className="card-bar">
          <button type="button" className="button small" onClick={page.showKeys}>
            {settings.showKeys}
          </button>
        </div>
      </Section>
    </ScreenFrame>
  );
}

function Section({ heading, children }: { heading: string; children: ReactNode }) {
  return (
    <section className="card">
      <h2 className="card-heading">{heading}</h2>
      {children}
    </section>
  );
}

function Looks() {
  const theme = useTheme();
  const [density, setDensity] = useState(chosenDensity);
  const [motion, setMotion] = useState(chosenMotion);
  return (
    <Section heading={settings.looks}>
      <Choice legend={settings.theme} options={THEMES} names={settings.themes} chosen={theme} onChoose={chooseTheme} />
      <Choice
        legend={settings.density}
        options={DENSITIES}
        names={settings.densities}
        chosen={density}
        onChoose={(one) => {
          chooseDensity(one);
          setDensity(one);
        }}
      />
      <Choice
        legend={settings.motion}
        options={MOTIONS}
        names={settings.motions}
        chosen={motion}
        onChoose={(one) => {
          chooseMotion(one);
          setMotion(one);
        }}
      />
    </Section>
  );
}

interface ChoiceProps<T extends string> {
  legend: string;
  options: readonly T[];
  names: Record<T, string>;
  chosen: T;
  onChoose: (option: T) => void;
}

function Choice<T extends string>({ legend, options, names, chosen, onChoose }: ChoiceProps<T>) {
  return (
    <fieldset className="choice-line">
      <legend>{legend}</legend>
      {options.map((one) => (
        <label key={one} className="choice">
          <input type="radio" name={legend} checked={one === chosen} onChange={() => onChoose(one)} />
          <span>{names[one]}</span>
        </label>
      ))}
    </fieldset>
  );
}

function Listening() {
  const store = useStore();
  const api = useLaterApi();
  const aloud = useReadsAloud();
  const [sentences, setSentences] = useState(announcesSentences);
  const [trial, setTrial] = useState<"speaking" | Spoke | null>(null);
  const voice = useRef<Voice>(undefined);
  const tryIt = (): void => {
    voice.current?.close();
    voice.current = new Voice(api, (speaking, spoke) => setTrial(speaking ? "speaking" : spoke));
    voice.current.say(settings.trial);
  };
  return (
    <Section heading={settings.hearing}>
      <CheckField label={settings.aloud} hint={settings.aloudHint} checked={aloud} onChange={readAloud} />
      <CheckField
        label={settings.sentences}
        hint={settings.sentencesHint}
        checked={sentences}
        onChange={(on) => {
          announceSentences(on);
          store.setAnnouncements(on);
          setSentences(on);
        }}
      />
      <div className="card-bar">
        <button type="button" className="button small" disabled={trial === "speaking"} onClick={tryIt}>
          {settings.try}
        </button>
        <span className="hint" role="status">
          {trial === "speaking" ? settings.trying : trial && settings.voices[trial]}
        </span>
      </div>
    </Section>
  );
}

/** What was allowed for good, and a way to take each back. */
function Policy() {
  const api = useLaterApi();
  const load = useCallback(() => api.grants(), [api]);
  const { value, error, again } = useFresh(load);
  return (
    <Section heading={settings.policy}>
      <p className="card-words">{settings.policyLead}</p>
      {error && <Trouble heading={settings.policyFailed} error={error} onAgain={again} />}
      {value?.problem && (
        <p className="is-bad" role="alert">
          {settings.policyProblem} {said(value.problem)}
        </p>
      )}
      {value?.items.length === 0 && <p className="hint">{settings.policyNone}</p>}
      {value && value.items.length > 0 && (
        <ul className="grants">
          {value.items.map((grant) => (
            <GrantRow key={grant.id} grant={grant} onRemoved={again} />
          ))}
        </ul>
      )}
    </Section>
  );
}

function GrantRow({ grant, onRemoved }: { grant: StandingGrant; onRemoved: () => void }) {
  const api = useLaterApi();
  const [state, setState] = useState<"kept" | "going" | { refused: string }>("kept");
  const what = grant.match === null ? settings.everyCall(grant.tool) : `${grant.tool}: ${visible(grant.match)}`;
  const whose = grant.scope === "conversation" ? settings.forConversation : grant.agent && settings.forAgent(grant.agent);
  const where = text.join(whose, grant.project && settings.inProject(grant.project));
  const remove = (): void => {
    setState("going");
    api.removeGrant(grant.id).then(onRemoved, (cause: unknown) => {
      setState({ refused: said(asApiError(cause).message) || settings.removeFailed });
    });
  };
  return (
    <li className="grant">
      <span className="grant-what mono">{what}</span>
      <span className="hint">{where}</span>
      {grant.problem && <span className="is-bad">{said(grant.problem)}</span>}
      <button type="button" className="button quiet small" aria-label={settings.askAgainBefore(what)} disabled={state === "going"} onClick={remove}>
        {settings.askAgain}
      </button>
      {typeof state === "object" && (
        <span className="is-bad" role="alert">
          {state.refused}
        </span>
      )}
    </li>
  );
}
