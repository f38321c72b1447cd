/** What the palette can do, given where the page is. The same actions as the buttons, by name. */

import { useMemo } from "react";
import { text } from "../../text";
import { palette } from "../../text.palette";
import { usePageActions } from "../actions";
import { announcesSentences, announceSentences } from "../announcer/setting";
import { copyText } from "../controls/Copy";
import { ask, commandKey } from "../keys";
import { goTo } from "../route";
import { screens } from "../screens";
import { readAloud, readsAloud } from "../speech/setting";
import { useMayWrite, usePick, usePicked, useStore } from "../store";
import { chooseTheme, THEMES } from "../theme";

export interface PaletteCommand {
  name: string;
  key?: string;
  note?: string;
  /** It changes something: who may only read is not offered it. */
  writes?: boolean;
  run: () => void;
}

export function useCommands(conversation: string | null): PaletteCommand[] {
  const store = useStore();
  const actions = usePageActions();
  const turn = usePicked(conversation ?? "", ({ state }) => state.turn?.id ?? null) ?? null;
  const waits = usePicked(conversation ?? "", ({ state }) => state.queue.some((item) => !item.held)) ?? false;
  const holds = usePicked(conversation ?? "", ({ state }) => state.queue.some((item) => item.held)) ?? false;
  const archived = usePicked(conversation ?? "", ({ state }) => state.archived) ?? false;
  const hasMessages = usePicked(conversation ?? "", ({ state }) => state.messages.length > 0) ?? false;
  const mayWrite = useMayWrite();
  const signedIn = usePick((snapshot) => snapshot.session.phase === "signed_in");

  return useMemo(() => {
    const here = conversation === null ? [] : conversationCommands(conversation);
    const all: PaletteCommand[] = [
      { name: palette.commands.fresh, writes: true, run: actions.goHome },
      ...here,
      { name: palette.commands.searchAll, run: () => ask("search") },
      { name: palette.commands.list, run: () => ask("list") },
      ...Object.entries(screens).filter(([word]) => word !== "inspect").map(([word, { name }]) => ({ name, run: () => goTo(`/${word}`) })),
      ...THEMES.map((theme) => ({ name: palette.commands.theme(theme), run: () => chooseTheme(theme) })),
      { name: palette.commands.announcements(announcesSentences()), run: () => toggleAnnouncements() },
      { name: palette.commands.aloud(readsAloud()), run: () => readAloud(!readsAloud()) },
      { name: palette.commands.keys, key: "?", run: actions.showKeys },
      ...(signedIn ? [{ name: palette.commands.signOut, run: () => void store.signOut() }] : []),
    ];
    return all.filter(({ writes }) => mayWrite || !writes);

    function toggleAnnouncements(): void {
      const sentences = !announcesSentences();
      announceSentences(sentences);
      store.setAnnouncements(sentences);
    }

    function conversationCommands(id: string): PaletteCommand[] {
      const running: PaletteCommand[] =
        turn === null
          ? []
          : [
              { name: palette.commands.stop, key: "Esc", writes: true, run: () => store.command(id, { type: "interrupt", turn }) },
              ...(waits ? [{ name: palette.commands.stopAndHold, writes: true, run: () => store.command(id, { type: "interrupt", turn, hold_queue: true }) }] : []),
            ];
      const held: PaletteCommand[] = holds ? [{ name: palette.commands.release, writes: true, run: () => store.command(id, { type: "edit_queued", held: false }) }] : [];
      const resting: PaletteCommand[] =
        turn === null && hasMessages
          ? [{ name: palette.commands.regenerate, writes: true, run: () => store.command(id, { type: "regenerate" }) }]
          : [];
      return [
        ...running,
        ...held,
        ...resting,
        { name: palette.commands.find, key: `${commandKey}F`, run: () => ask("find") },
        { name: palette.commands.end, key: "G", run: () => ask("end") },
        { name: palette.commands.start, key: "Shift+G", run: () => ask("start") },
        { name: palette.commands.settings, writes: true, run: () => ask("settings") },
        { name: text.header.branch, writes: true, run: () => actions.branch(id) },
        { name: palette.commands.rename, writes: true, run: () => ask("rename") },
        {
          name: archived ? palette.commands.unarchive : palette.commands.archive,
          writes: true,
          run: () => store.command(id, { type: "update_conversation", archived: !archived }),
        },
        { name: text.list.share, run: () => actions.share(id) },
        { name: text.list.inspect, run: () => goTo(`/inspect/${id}`) },
        { name: palette.commands.copyId, run: () => void copyText(id) },
      ];
    }
  }, [conversation, store, actions, turn, waits, holds, archived, hasMessages, signedIn, mayWrite]);
}

