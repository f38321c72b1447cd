/** Labelled fields of a form: a hint below each, and in its place what is wrong with it. */

import { useId, useRef, type ReactNode } from "react";
import { useAutoGrow } from "../composer/grow";

interface Common {
  label: string;
  hint?: ReactNode;
  /** What is wrong with it. */
  error?: string | undefined;
}

interface TextProps extends Common {
  value: string;
  onChange: (value: string) => void;
  placeholder?: string;
  numeric?: boolean;
  /** Of names and commands: no spelling, no capitals. */
  code?: boolean;
  secret?: boolean;
  list?: string;
  autoFocus?: boolean;
  disabled?: boolean;
}

export function TextField({ label, hint, error, value, onChange, placeholder, numeric = false, code = false, secret = false, list, autoFocus, disabled }: TextProps) {
  const id = useId();
  return (
    <div className="settings-field">
      <label className="label" htmlFor={id}>
        {label}
      </label>
      <input
        id={id}
        className={code ? "field mono" : "field"}
        type={secret ? "password" : "text"}
        value={value}
        placeholder={placeholder}
        inputMode={numeric ? "decimal" : undefined}
        list={list}
        spellCheck={code || numeric || secret ? false : undefined}
        autoCapitalize={code || secret ? "off" : undefined}
        autoComplete={secret ? "new-password" : "off"}
        autoFocus={autoFocus}
        disabled={disabled}
        aria-invalid={error !== undefined || undefined}
        aria-describedby={`${id}-note`}
        onChange={(event) => onChange(event.target.value)}
      />
      <Note id={`${id}-note`} hint={hint} error={error} />
    </div>
  );
}

interface AreaProps extends Common {
  value: string;
  onChange: (value: string) => void;
  placeholder?: string;
  rows?: number;
  autoFocus?: boolean;
  disabled?: boolean;
}

export function AreaField({ label, hint, error, value, onChange, placeholder, rows = 3, autoFocus, disabled }: AreaProps) {
  const id = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  useAutoGrow(field, value);
  return (
    <div className="settings-field">
      <label className="label" htmlFor={id}>
        {label}
      </label>
      <textarea
        ref={field}
        id={id}
        className="field area"
        rows={rows}
        value={value}
        placeholder={placeholder}
        autoFocus={autoFocus}
        disabled={disabled}
        aria-invalid={error !== undefined || undefined}
        aria-describedby={`${id}-note`}
        onChange={(event) => onChange(event.target.value)}
      />
      <Note id={`${id}-note`} hint={hint} error={error} />
    </div>
  );
}

interface SelectProps extends Common {
  value: string;
  options: readonly (readonly [value: string, name: string])[];
  onChange: (value: string) => void;
  disabled?: boolean;
}

/** A value that is none of the options stays one to choose. */
export function SelectField({ label, hint, error, value, options, onChange, disabled }: SelectProps) {
  const id = useId();
  const all = options.some(([known]) => known === value) ? options : [...options, [value, value] as const];
  return (
    <div className="settings-field">
      <label className="label" htmlFor={id}>
        {label}
      </label>
      <select
        id={id}
        className="field"
        value={value}
        disabled={disabled}
        aria-invalid={error !== undefined || undefined}
        aria-describedby={`${id}-note`}
        onChange={(event) => onChange(event.target.value)}
      >
        {all.map(([known, name]) => (
          <option key={known} value={known}>
            {name}
          </option>
        ))}
      </select>
      <Note id={`${id}-note`} hint={hint} error={error} />
    </div>
  );
}

interface CheckProps {
  label: string;
  hint?: string | undefined;
  checked: boolean;
  onChange: (checked: boolean) => void;
  disabled?: boolean;
}

export function CheckField({ label, hint, checked, onChange, disabled }: CheckProps) {
  return (
    <label className="option">
      <input type="checkbox" checked={checked} disabled={disabled} onChange={(event) => onChange(event.target.checked)} />
      <span>
        <span className="option-label">{label}</span>
        {hint && <span className="option-more">{hint}</span>}
      </span>
    </label>
  );
}

export function Note({ id, hint, error }: { id?: string; hint?: ReactNode; error: string | undefined }) {
  if (error === undefined && hint === undefined) return id ? <span id={id} hidden /> : null;
  return (
    <span id={id} className={error === undefined ? "hint" : "hint is-bad"} role={error === undefined ? undefined : "alert"}>
      {error ?? hint}
    </span>
  );
}
