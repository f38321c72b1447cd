/** Every key, by what one wants to do. */

import { palette } from "../../text.palette";
import { Dialog } from "../controls/Dialog";
import { Icon } from "../controls/Icon";
import { altKey, commandKey } from "../keys";

const GROUPS: readonly { heading: string; keys: readonly (readonly [string, string])[] }[] = [
  {
    heading: palette.keys.groups.writing,
    keys: [
      ["Enter", palette.keys.send],
      ["Shift+Enter", palette.keys.newline],
      ["@", palette.keys.file],
      ["/", palette.keys.command],
      [`${commandKey}Enter`, palette.keys.steer],
      ["↑", palette.keys.editQueued],
      [`${commandKey}B`, palette.keys.bold],
      [`${commandKey}I`, palette.keys.italic],
      [`${commandKey}E`, palette.keys.code],
      [`${commandKey}Shift+X`, palette.keys.strike],
      [`${commandKey}Shift+E`, palette.keys.fence],
      [`${commandKey}Shift+7`, palette.keys.numbers],
      [`${commandKey}Shift+8`, palette.keys.bullets],
      [`${commandKey}Shift+9`, palette.keys.quote],
      ["Esc", palette.keys.escape],
    ],
  },
  {
    heading: palette.keys.groups.answering,
    keys: [
      [`${altKey}1`, palette.keys.allowOnce],
      [`${altKey}2`, palette.keys.allowScope],
      [`${altKey}3`, palette.keys.deny],
    ],
  },
  {
    heading: palette.keys.groups.moving,
    keys: [
      ["F6", palette.keys.regions],
      ["Shift+F6", palette.keys.regionsBack],
      ["J", palette.keys.nextBlock],
      ["K", palette.keys.previousBlock],
      ["O", palette.keys.openBlock],
      ["G", palette.keys.end],
      ["Shift+G", palette.keys.start],
    ],
  },
  {
    heading: palette.keys.groups.anywhere,
    keys: [
      [`${commandKey}K`, palette.keys.palette],
      [`${commandKey}F`, palette.keys.find],
      ["?", palette.keys.help],
    ],
  },
];

export default function KeyHelp({ onClose }: { onClose: () => void }) {
  return (
    <Dialog label={palette.keys.heading} className="key-help" onClose={onClose}>
      <div className="key-help-head">
        <h2>{palette.keys.heading}</h2>
        <button type="button" className="icon-button" aria-label={palette.keys.close} onClick={onClose}>
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
