/** What the palette can do, given where the page is. The same actions as the buttons, by name. */

import { useMemo } from "react";
import { text } from "../../text";
import { usePageActions } from "../actions";
import { announcesSentences, announceSentences } from "../announcer/setting";
import { copyText } from "../controls/Copy";
import { ask, commandKey } from "../keys";
import { goTo } from "../route";
import { screens } from "../screens";
import { readAloud, readsAloud } from "../speech/setting";
import { usePick, usePicked, useStore } from "../store";
import { chooseTheme, THEMES } from "../theme";

export interface PaletteCommand {
  name: string;
  key?: string;
  note?: string;
  run: () => void;
}

export function useCommands(conversation: string | null): PaletteCommand[] {
  const store = useStore();
  const actions = usePageActions();
  const turn = usePicked(conversation ?? "", ({ state }) => state.turn?.id ?? null) ?? null;
  const archived = usePicked(conversation ?? "", ({ state }) => state.archived) ?? false;
  const hasMessages = usePicked(conversation ?? "", ({ state }) => state.messages.length > 0) ?? false;
  const signedIn = usePick((snapshot) => snapshot.session.phase === "signed_in");

  return useMemo(() => {
    const here = conversation === null ? [] : conversationCommands(conversation);
    return [
      { name: text.commands.fresh, run: actions.goHome },
      ...here,
      { name: text.commands.searchAll, run: () => ask("search") },
      { name: text.commands.list, run: () => ask("list") },
      ...Object.entries(screens).filter(([word]) => word !== "inspect").map(([word, { name }]) => ({ name, run: () => goTo(`/${word}`) })),
      ...THEMES.map((theme) => ({ name: text.commands.theme(theme), run: () => chooseTheme(theme) })),
      { name: text.commands.announcements(announcesSentences()), run: () => toggleAnnouncements() },
      { name: text.commands.aloud(readsAloud()), run: () => readAloud(!readsAloud()) },
      { name: text.commands.keys, key: "?", run: actions.showKeys },
      ...(signedIn ? [{ name: text.commands.signOut, run: () => void store.signOut() }] : []),
    ];

    function toggleAnnouncements(): void {
      const sentences = !announcesSentences();
      announceSentences(sentences);
      store.setAnnouncements(sentences);
    }

    function conversationCommands(id: string): PaletteCommand[] {
      const running: PaletteCommand[] =
        turn === null
          ? []
          : [{ name: text.commands.stop, key: "Esc", run: () => store.command(id, { type: "interrupt", turn }) }];
      const resting: PaletteCommand[] =
        turn === null && hasMessages
          ? [{ name: text.commands.regenerate, run: () => store.command(id, { type: "regenerate" }) }]
          : [];
      return [
        ...running,
        ...resting,
        { name: text.commands.find, key: `${commandKey}F`, run: () => ask("find") },
        { name: text.commands.end, key: "G", run: () => ask("end") },
        { name: text.commands.start, key: "Shift+G", run: () => ask("start") },
        { name: text.commands.settings, run: () => ask("settings") },
        { name: text.commands.branch, run: () => actions.branch(id) },
        { name: text.commands.rename, run: () => ask("rename") },
        {
          name: archived ? text.commands.unarchive : text.commands.archive,
          run: () => store.command(id, { type: "update_conversation", archived: !archived }),
        },
        { name: text.list.share, run: () => actions.share(id) },
        { name: text.list.inspect, run: () => goTo(`/inspect/${id}`) },
        { name: text.commands.copyId, run: () => void copyText(id) },
      ];
    }
  }, [conversation, store, actions, turn, archived, hasMessages, signedIn]);
}

