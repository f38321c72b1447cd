/**
 * The page's beginning: a one-time code in the address is taken out of it at once, then the store starts and the view
 * draws it. Nothing else runs at load.
 */

import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { openStore } from "./model/store";
import { browserPorts } from "./transport/browser";
import { App } from "./view/App";
import { enter } from "./view/signin/code";
import { announcesSentences } from "./view/announcer/setting";
import { followKeyboard } from "./view/controls/keyboard";
import { followKeptLinks } from "./view/files/links";
import { StoreContext } from "./view/store";
import "./style/tokens.css";
import "./style/base.css";
import "./style/layout.css";
import "./style/list.css";
import "./style/transcript.css";
import "./style/markdown.css";
import "./style/tools.css";
import "./style/dock.css";
import "./style/composer.css";
import "./style/dialogs.css";

const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");

const store = openStore(browserPorts());
void enter(store);
store.setAnnouncements(announcesSentences());
followKeyboard();
followKeptLinks();

createRoot(root).render(
  <StrictMode>
    <StoreContext value={store}>
      <App />
    </StoreContext>
  </StrictMode>,
);
