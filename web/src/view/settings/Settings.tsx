/**
 * The settings of one conversation: who answers, how, how much it may cost, and what is always allowed. The server checks
 * every value; what it refuses is said at the field. Also used before there is a conversation, for the one to be.
 */

import { useEffect, useId, useRef, useState, type FormEvent, type ReactNode } from "react";
import { ApiError } from "../../transport/api";
import type { Grant } from "../../protocol/events.gen";
import { said } from "../../sentences";
import { text } from "../../text";
import { later } from "../../text.later";
import { places } from "../../text.places";
import { Dialog } from "../controls/Dialog";
import { Icon } from "../controls/Icon";
import { visible } from "../controls/visible";
import { ScreenLink } from "../frame/ScreenLink";
import { screens } from "../screens";
import { usePick, usePicked, useStore } from "../store";
import { changesOf, fieldOf, formOf, modelsOf, NUMBERS, type Field, type Form, type Params } from "./params";

const NO_PARAMS: Params = {};
const NO_GRANTS: readonly Grant[] = [];
const ANSWERS = ["temperature", "max_tokens", "thinking_budget"] as const;
const LIMITS = ["context_tokens_cap", "spend_limit_usd"] as const;
const EFFORTS = ["", "low", "medium", "high"] as const;

interface SettingsProps {
  id: string;
  /** Opened to see what is always allowed. */
  atGrants?: boolean;
  onClose: () => void;
}

export default function Settings({ id, atGrants = false, onClose }: SettingsProps) {
  const store = useStore();
  const params = usePicked(id, ({ state }) => state.params as Params) ?? NO_PARAMS;
  const agent = usePicked(id, ({ state }) => state.agent) ?? "";
  const used = usePicked(id, ({ state }) => state.messages.findLast((message) => message.model !== null)?.model) ?? null;

  const save = async (patch: Record<string, unknown>, chosen: string): Promise<void> => {
    if (chosen !== agent) await answer({ type: "update_conversation", agent: chosen });
    if (Object.keys(patch).length > 0) await answer({ type: "set_params", patch });
  };
  const answer = async (body: Parameters<typeof store.command>[1]): Promise<void> => {
    const command = store.command(id, body);
    try {
      await store.answered(command);
    } catch (error) {
      // It is shown here and nowhere else.
      store.discard(command);
      throw error;
    }
  };
  return (
    <SettingsForm heading={later.settings.heading} params={params} agent={agent} used={used} onSave={save} onClose={onClose}>
      <Grants id={id} shown={atGrants} />
    </SettingsForm>
  );
}

interface SettingsFormProps {
  heading: string;
  params: Params;
  agent: string;
  /** The model that answered last. */
  used: string | null;
  onSave: (patch: Record<string, unknown>, agent: string) => Promise<void> | void;
  onClose: () => void;
  children?: ReactNode;
}

export function SettingsForm({ heading, params, agent, used, onSave, onClose, children }: SettingsFormProps) {
  const agents = usePick((snapshot) => snapshot.agents.items);
  const [form, setForm] = useState<Form>(() => formOf(params));
  const [chosen, setChosen] = useState(agent);
  const [saving, setSaving] = useState(false);
  const [errors, setErrors] = useState<Partial<Record<Field | "form", string>>>({});
  const models = useId();
  const own = agents.find((known) => known.id === chosen)?.model ?? null;

  const set = (name: Field, value: string | boolean): void => {
    setForm({ ...form, [name]: value });
    if (errors[name]) setErrors({ ...errors, [name]: undefined });
  };

  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const { patch, wrong } = changesOf(form, params);
    if (wrong.length > 0) {
      setErrors(Object.fromEntries(wrong.map((name) => [name, later.settings.notANumber])));
      return;
    }
    setSaving(true);
    setErrors({});
    try {
      await onSave(patch, chosen);
      onClose();
    } catch (error) {
      const words = error instanceof Error && error.message ? said(error.message) : later.settings.failed;
      const field = error instanceof ApiError ? fieldOf(error.error) : null;
      setErrors({ [field ?? "form"]: words });
      setSaving(false);
    }
  };

  const number = (name: (typeof NUMBERS)[number]): ReactNode => (
    <TextField key={name} name={name} value={form[name]} error={errors[name]} numeric onChange={(value) => set(name, value)} />
  );

  return (
    <Dialog label={heading} className="sheet settings" onClose={onClose}>
      <form className="sheet-form" noValidate onSubmit={(event) => void submit(event)}>
        <div className="sheet-head">
          <h2>{heading}</h2>
          <button type="button" className="icon-button" aria-label={later.settings.close} onClick={onClose}>
            <Icon name="close" />
          </button>
        </div>
        <div className="sheet-body">
          <p className="hint">{later.settings.lead}</p>
          <section>
            <h3>{later.settings.who}</h3>
            <div className="settings-grid">
              <SelectField
                label={later.settings.agent}
                hint={agents.find((known) => known.id === chosen)?.description ?? ""}
                value={chosen}
                options={agents.map((known) => [known.id, known.name])}
                onChange={setChosen}
              />
              <TextField
                name="model"
                label={later.settings.model}
                hint={later.settings.modelHint}
                placeholder={own ?? used ?? later.settings.byAgent}
                value={form.model}
                error={errors.model}
                list={models}
                onChange={(value) => set("model", value)}
              />
              <datalist id={models}>
                {modelsOf([used], agents).map((model) => (
                  <option key={model} value={model} />
                ))}
              </datalist>
            </div>
          </section>
          <section>
            <h3>{later.settings.answers}</h3>
            <div className="settings-grid">
              {ANSWERS.map(number)}
              <SelectField
                label={later.settings.fields["reasoning_effort"]?.[0] ?? ""}
                hint={errors.reasoning_effort ?? later.settings.fields["reasoning_effort"]?.[1] ?? ""}
                value={form.reasoning_effort}
                options={EFFORTS.map((effort) => [effort, later.settings.efforts[effort] ?? effort])}
                onChange={(value) => set("reasoning_effort", value)}
              />
            </div>
          </section>
          <section>
            <h3>{later.settings.limits}</h3>
            <div className="settings-grid">{LIMITS.map(number)}</div>
            <label className="option settings-switch">
              <input type="checkbox" checked={form.knowledge} onChange={(event) => set("knowledge", event.target.checked)} />
              <span>
                <span className="option-label">{later.settings.knowledge}</span>
                <span className="option-more">{later.settings.knowledgeHint}</span>
              </span>
            </label>
          </section>
          {children}
          <section>
            <h3>{places.frame.server}</h3>
            <p className="settings-screens">
              {Object.entries(screens).map(([word, { name }]) => (
                <ScreenLink key={word} to={`/${word}`} onFollow={onClose}>
                  {name}
                </ScreenLink>
              ))}
            </p>
          </section>
        </div>
        <div className="sheet-bar">
          {errors.form && (
            <p className="is-bad" role="alert">
              {errors.form}
            </p>
          )}
          <button type="button" className="button" onClick={onClose}>
            {later.settings.cancel}
          </button>
          <button type="submit" className="button primary" disabled={saving}>
            {saving ? later.settings.saving : later.settings.save}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

interface TextFieldProps {
  name: Field;
  label?: string;
  hint?: string;
  placeholder?: string;
  value: string;
  error: string | undefined;
  numeric?: boolean;
  list?: string;
  onChange: (value: string) => void;
}

function TextField({ name, label, hint, placeholder, value, error, numeric = false, list, onChange }: TextFieldProps) {
  const note = useId();
  const [known, told] = later.settings.fields[name] ?? ["", ""];
  return (
    <div className="settings-field">
      <label className="label" htmlFor={`${note}-field`}>
        {label ?? known}
      </label>
      <input
        id={`${note}-field`}
        className="field"
        value={value}
        placeholder={placeholder ?? later.settings.byAgent}
        inputMode={numeric ? "decimal" : undefined}
        list={list}
        spellCheck={false}
        autoCapitalize="off"
        autoComplete="off"
        aria-invalid={error !== undefined || undefined}
        aria-describedby={note}
        onChange={(event) => onChange(event.target.value)}
      />
      <span id={note} className={error === undefined ? "hint" : "hint is-bad"} role={error === undefined ? undefined : "alert"}>
        {error ?? hint ?? told}
      </span>
    </div>
  );
}

interface SelectFieldProps {
  label: string;
  hint: string;
  value: string;
  options: readonly (readonly [value: string, name: string])[];
  onChange: (value: string) => void;
}

/** A value that is none of the options stays one to choose. */
function SelectField({ label, hint, value, options, onChange }: SelectFieldProps) {
  const id = useId();
  const all = options.some(([known]) => known === value) ? options : [...options, [value, value] as const];
  return (
    <div className="settings-field">
      <label className="label" htmlFor={id}>
        {label}
      </label>
      <select id={id} className="field" value={value} aria-describedby={`${id}-hint`} onChange={(event) => onChange(event.target.value)}>
        {all.map(([known, name]) => (
          <option key={known} value={known}>
            {name}
          </option>
        ))}
      </select>
      <span id={`${id}-hint`} className="hint">
        {hint}
      </span>
    </div>
  );
}

const PROGRAM = "program:";

/** What a person allowed for longer than once, with a way to take each back. */
function Grants({ id, shown }: { id: string; shown: boolean }) {
  const store = useStore();
  const section = useRef<HTMLElement>(null);
  useEffect(() => {
    if (shown) section.current?.scrollIntoView();
  }, [shown]);
  const grants = usePicked(id, ({ state }) => state.grants) ?? NO_GRANTS;
  return (
    <section ref={section}>
      <h3>{later.settings.grants}</h3>
      {grants.length === 0 && <p className="hint">{later.settings.grantsNone}</p>}
      <ul className="grants">
        {grants.map((grant) => {
          const what = sayGrant(grant);
          return (
            <li key={`${grant.tool}:${grant.match ?? ""}:${grant.scope}`} className="grant">
              <span className="grant-what">
                <span className={grant.match === null ? undefined : "mono"}>{what}</span>
                <span className="hint">{text.join(grant.match !== null && grant.tool, later.settings.grantScope[grant.scope])}</span>
              </span>
              <button
                type="button"
                className="button small"
                aria-label={later.settings.grantRemove(what)}
                onClick={() => store.command(id, { type: "remove_grant", tool: grant.tool, match: grant.match })}
              >
                {later.settings.grantRemoveShort}
              </button>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function sayGrant({ tool, match }: Grant): string {
  if (match === null) return later.settings.grantAll(visible(tool));
  return match.startsWith(PROGRAM) ? later.settings.grantProgram(visible(match.slice(PROGRAM.length))) : visible(match);
}
