/** Values that go to the server and never come back: each is set, replaced or cleared, and shown by its name alone. */

import { words } from "../../text.agents";
import { Icon } from "../controls/Icon";
import { Note, TextField } from "../frame/Fields";
import { newKey, type SecretForm } from "./form";

interface SecretsProps {
  label: string;
  hint?: string;
  error?: string | undefined;
  add: string;
  secrets: readonly SecretForm[];
  onChange: (secrets: SecretForm[]) => void;
}

export function Secrets({ label, hint, error, add, secrets, onChange }: SecretsProps) {
  const say = words.form.secret;
  const change = (key: number, patch: Partial<SecretForm>): void => onChange(secrets.map((one) => (one.key === key ? { ...one, ...patch } : one)));
  return (
    <div className="settings-field rows" role="group" aria-label={label}>
      <span className="label">{label}</span>
      {secrets.map((secret) => (
        <div key={secret.key} className="row-fields">
          {secret.isSet && secret.value === null ? (
            <>
              <span className="secret-name mono">{secret.name}</span>
              <span className="secret-state">
                <Icon name="check" />
                {say.set}
              </span>
              <button type="button" className="button small" aria-label={say.replaceOf(secret.name)} onClick={() => change(secret.key, { value: "" })}>
                {say.replace}
              </button>
            </>
          ) : (
            <>
              {secret.isSet ? (
                <span className="secret-name mono">{secret.name}</span>
              ) : (
                <TextField label={say.name} value={secret.name} code onChange={(name) => change(secret.key, { name })} />
              )}
              <TextField label={say.valueOf(secret.name)} value={secret.value ?? ""} secret autoFocus={secret.isSet} onChange={(value) => change(secret.key, { value })} />
              {secret.isSet && (
                <button type="button" className="button small" aria-label={say.keepOf(secret.name)} onClick={() => change(secret.key, { value: null })}>
                  {say.keep}
                </button>
              )}
            </>
          )}
          <button
            type="button"
            className="icon-button"
            aria-label={say.clearOf(secret.name)}
            title={say.clear}
            onClick={() => onChange(secrets.filter(({ key }) => key !== secret.key))}
          >
            <Icon name="close" />
          </button>
        </div>
      ))}
      <Note hint={hint} error={error} />
      <button type="button" className="button small" onClick={() => onChange([...secrets, { key: newKey(), name: "", isSet: false, value: "" }])}>
        <Icon name="add" />
        {add}
      </button>
    </div>
  );
}
