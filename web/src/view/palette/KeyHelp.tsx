/** Every key, by what one wants to do. */

import { later } from "../../text.later";
import { Dialog } from "../controls/Dialog";
import { Icon } from "../controls/Icon";
import { altKey, commandKey } from "../keys";

const GROUPS: readonly { heading: string; keys: readonly (readonly [string, string])[] }[] = [
  {
    heading: later.keys.groups.writing,
    keys: [
      ["Enter", later.keys.send],
      ["Shift+Enter", later.keys.newline],
      ["@", later.keys.file],
      ["/", later.keys.command],
      [`${commandKey}Enter`, later.keys.steer],
      ["↑", later.keys.editQueued],
      [`${commandKey}B`, later.keys.bold],
      [`${commandKey}I`, later.keys.italic],
      [`${commandKey}E`, later.keys.code],
      [`${commandKey}Shift+X`, later.keys.strike],
      [`${commandKey}Shift+E`, later.keys.fence],
      [`${commandKey}Shift+7`, later.keys.numbers],
      [`${commandKey}Shift+8`, later.keys.bullets],
      [`${commandKey}Shift+9`, later.keys.quote],
      ["Esc", later.keys.escape],
    ],
  },
  {
    heading: later.keys.groups.answering,
    keys: [
      [`${altKey}1`, later.keys.allowOnce],
      [`${altKey}2`, later.keys.allowScope],
      [`${altKey}3`, later.keys.deny],
    ],
  },
  {
    heading: later.keys.groups.moving,
    keys: [
      ["F6", later.keys.regions],
      ["Shift+F6", later.keys.regionsBack],
      ["J", later.keys.nextBlock],
      ["K", later.keys.previousBlock],
      ["O", later.keys.openBlock],
      ["G", later.keys.end],
      ["Shift+G", later.keys.start],
    ],
  },
  {
    heading: later.keys.groups.anywhere,
    keys: [
      [`${commandKey}K`, later.keys.palette],
      [`${commandKey}F`, later.keys.find],
      ["?", later.keys.help],
    ],
  },
];

export default function KeyHelp({ onClose }: { onClose: () => void }) {
  return (
    <Dialog label={later.keys.heading} className="key-help" onClose={onClose}>
      <div className="key-help-head">
        <h2>{later.keys.heading}</h2>
        <button type="button" className="icon-button" aria-label={later.keys.close} onClick={onClose}>
          <Icon name="close" />
        </button>
      </div>
      <div className="key-help-groups">
        {GROUPS.map((group) => (
          <section key={group.heading}>
            <h3>{group.heading}</h3>
            <dl>
              {group.keys.map(([key, what]) => (
                <div key={key}>
                  <dt>
                    <kbd>{key}</kbd>
                  </dt>
                  <dd>{what}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
