/** Every key, by what one wants to do. */

import { text } from "../../text";
import { Dialog } from "../controls/Dialog";
import { Icon } from "../controls/Icon";
import { altKey, commandKey } from "../keys";

const GROUPS: readonly { heading: string; keys: readonly (readonly [string, string])[] }[] = [
  {
    heading: text.keys.groups.writing,
    keys: [
      ["Enter", text.keys.send],
      ["Shift+Enter", text.keys.newline],
      [`${commandKey}Enter`, text.keys.steer],
      ["↑", text.keys.editQueued],
      ["Esc", text.keys.escape],
    ],
  },
  {
    heading: text.keys.groups.answering,
    keys: [
      [`${altKey}1`, text.keys.allowOnce],
      [`${altKey}2`, text.keys.allowScope],
      [`${altKey}3`, text.keys.deny],
    ],
  },
  {
    heading: text.keys.groups.moving,
    keys: [
      ["F6", text.keys.regions],
      ["Shift+F6", text.keys.regionsBack],
      ["J", text.keys.nextBlock],
      ["K", text.keys.previousBlock],
      ["O", text.keys.openBlock],
      ["G", text.keys.end],
      ["Shift+G", text.keys.start],
    ],
  },
  {
    heading: text.keys.groups.anywhere,
    keys: [
      [`${commandKey}K`, text.keys.palette],
      [`${commandKey}F`, text.keys.find],
      ["?", text.keys.help],
    ],
  },
];

export default function KeyHelp({ onClose }: { onClose: () => void }) {
  return (
    <Dialog label={text.keys.heading} className="key-help" onClose={onClose}>
      <div className="key-help-head">
        <h2>{text.keys.heading}</h2>
        <button type="button" className="icon-button" aria-label={text.keys.close} onClick={onClose}>
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
