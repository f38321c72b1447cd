/** Every program that can answer: whether it is ready, what it can do, and a try of it. */

import { text } from "../../text";
import { ScreenFrame } from "../frame/ScreenFrame";
import type { ScreenProps } from "../screens";

export default function Backends({ listShown, onShowList }: ScreenProps) {
  return (
    <ScreenFrame heading={text.screens.backends} listShown={listShown} onShowList={onShowList}>
      {null}
    </ScreenFrame>
  );
}
