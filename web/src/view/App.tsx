/**
 * The whole page: the door while signed out, else the list beside a conversation. Owns the layers above the page (palette,
 * keys) and the keys that work everywhere; knows nothing of what a conversation holds.
 */

import { Suspense, useCallback, useEffect, useMemo, useState } from "react";
import { said } from "../sentences";
import { text } from "../text";
import { Announcer } from "./announcer/Announcer";
import { ConnectionBanner } from "./connection/ConnectionBanner";
import { Conversation } from "./conversation/Conversation";
import { Dialog, layerIsOpen } from "./controls/Dialog";
import { useIsNarrow } from "./controls/narrow";
import { Crash } from "./Crash";
import { ConversationList } from "./list/ConversationList";
import { cycleRegions, isTyping, onAsked, withCommandKey } from "./keys";
import { fetchTheRest, Home, keepACopy, KeyHelp, NotFound, Notifier, Share, SignIn } from "./later";
import { MeContext } from "./me";
import { Palette } from "./palette/Palette";
import { Notices } from "./notices/Notices";
import { addressOf, goTo, useRoute } from "./route";
import { screens } from "./screens";
import { useMayWrite, usePick, useStore, useWaitingCount } from "./store";
import { useUnseen } from "./unseen";
import { ActionsContext, type PageActions } from "./actions";

type Layer = "palette" | "keys" | "list" | null;

export function App() {
  const session = usePick((snapshot) => snapshot.session);
  const [wasIn, setWasIn] = useState(false);
  if (session.phase === "signed_in" && !wasIn) setWasIn(true);
  // A lost connection is no lost session: what is shown stays, the banner says the rest.
  // Nor does a server that does not answer take away what was seen: a session without one is that of the copy.
  const isIn = session.phase === "signed_in" || ((wasIn || session.session !== null) && session.phase !== "signed_out");
  return (
    <Crash>
      {isIn ? (
        <Page />
      ) : (
        <Suspense fallback={null}>
          <SignIn session={session} />
        </Suspense>
      )}
      <Announcer />
    </Crash>
  );
}

function Page() {
  const store = useStore();
  const route = useRoute();
  const narrow = useIsNarrow();
  const [layer, setLayer] = useState<Layer>(null);
  const [sideShown, setSideShown] = useState(true);
  const waiting = useWaitingCount();
  const unseen = useUnseen();
  const title = usePick((snapshot) => (route.conversation ? snapshot.list.byId.get(route.conversation)?.title : null));
  const isCopy = usePick(({ copiedAt }) => copiedAt !== null);
  const mayWrite = useMayWrite();
  const user = usePick(({ session }) => session.session?.user ?? null);
  const me = useMemo(() => ({ user, client: store.client }), [store, user]);
  const close = useCallback(() => setLayer(null), []);

  const screen = route.screen && screens[route.screen];
  const name = screen ? screen.name : (title ?? null);
  useEffect(() => {
    document.title = text.title(waiting, unseen, name);
  }, [waiting, unseen, name]);

  useEffect(() => {
    void store.loadAgents();
    void store.loadRequests();
  }, [store]);
  useEffect(fetchTheRest, []);
  useEffect(() => keepACopy(store), [store]);

  useEffect(() => {
    store.setVisible(route.conversation);
  }, [store, route.conversation]);

  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (withCommandKey(event, "k")) {
        event.preventDefault();
        setLayer((now) => (now === "palette" ? null : "palette"));
      } else if (event.key === "F6") {
        event.preventDefault();
        cycleRegions(event.shiftKey);
      } else if (event.key === "?" && !isTyping(event.target) && !layerIsOpen()) {
        event.preventDefault();
        setLayer("keys");
      }
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);

  // The session browser is a list itself: the other lies over it when asked for.
  const asDrawer = narrow || route.screen === "conversations";
  const side = sideShown && !asDrawer;
  const toggleList = useCallback(() => {
    if (asDrawer) setLayer((now) => (now === "list" ? null : "list"));
    else setSideShown((now) => !now);
  }, [asDrawer]);
  useEffect(() => onAsked("list", toggleList), [toggleList]);

  const [shared, setShared] = useState<string | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const [actions] = useState<PageActions>(() => ({
    goHome: () => goTo(addressOf(null)),
    open: (conversation, at) => {
      setLayer(null);
      goTo(addressOf(conversation, at));
    },
    branch: (conversation, message) => {
      setTrouble(null);
      store.create({ branch: { conversation, message: message ?? null } }).then(
        (created) => goTo(addressOf(created.conversation)),
        (error: unknown) => setTrouble(text.join(text.message.branchFailed, error instanceof Error && said(error.message))),
      );
    },
    share: setShared,
    showPalette: () => setLayer("palette"),
    showKeys: () => setLayer("keys"),
  }));

  // Who may only read is not offered what begins something new.
  const Stage = route.missing ? NotFound : screen ? screen.View : mayWrite ? Home : screens.conversations.View;
  const list = <ConversationList current={route.conversation} onChosen={close} />;
  return (
    <MeContext value={me}>
      <ActionsContext value={actions}>
        <div className={`page${side ? " with-side" : ""}${isCopy ? " is-copy" : ""}${mayWrite ? "" : " is-reader"}`}>
          {side && <nav className="side" aria-label={text.list.label} data-region tabIndex={-1}>{list}</nav>}
          <div className="stage">
            <ConnectionBanner />
            {route.conversation === null ? (
              <Suspense fallback={null}>
                <Stage rest={route.rest} onShowList={toggleList} listShown={side} />
              </Suspense>
            ) : (
              <Conversation
                key={route.conversation}
                id={route.conversation}
                place={route}
                onShowList={toggleList}
                listShown={side}
              />
            )}
          </div>
        </div>
        <Notices trouble={trouble} onDismiss={() => setTrouble(null)} />
        {layer === "list" && asDrawer && (
          <Dialog label={text.list.label} className="drawer" onClose={close}>
            {list}
          </Dialog>
        )}
        {layer === "palette" && <Palette conversation={route.conversation} onClose={close} />}
        <Suspense fallback={null}>
          <Notifier />
          {layer === "keys" && <KeyHelp onClose={close} />}
          {shared !== null && <Share key={shared} id={shared} onClose={() => setShared(null)} />}
        </Suspense>
      </ActionsContext>
    </MeContext>
  );
}
