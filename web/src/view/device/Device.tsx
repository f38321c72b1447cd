/** This device: installed or not, its notices, its offline copy, and the way to another one. */

import { text } from "../../text";
import { ScreenFrame } from "../frame/ScreenFrame";
import type { ScreenProps } from "../screens";

export default function Device({ listShown, onShowList }: ScreenProps) {
  return <ScreenFrame heading={text.screens.device} listShown={listShown} onShowList={onShowList}>{null}</ScreenFrame>;
}
