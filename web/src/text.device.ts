/** The words of this device: its notices, its copy, the page as an app, and another device. */

import { count } from "./measures";

export const device = {
  lead: "What this browser keeps and shows of Palaver, and the way to your phone.",

  notices: "Notices",
  noticesLead: "Notices of the system while this page is in the background. The tab's title and the bell always count what waits.",
  notify: "Notify me on this device",
  kinds: {
    waiting: ["Something waits for me", "An approval, a question or a plan"],
    done: ["A turn is done", "The agent has answered, and nothing more is queued"],
    failed: ["A turn failed", "With what to do about it in the conversation"],
  },
  states: {
    on: "On",
    off: "Muted: nothing is shown while you are elsewhere.",
    denied: "This browser does not let Palaver show notices. Allow them in the browser's settings for this address.",
    missing: "This browser shows notices only on pages with HTTPS, or on the machine itself.",
  },
  try: "Show one now",
  trial: { title: "Palaver", body: "This is how a notice looks." },
  noticeOf: {
    done: (agent: string) => `${agent} is done`,
    failed: (agent: string) => `${agent} failed`,
  },

  app: "As an app",
  appStates: {
    installed: "You are in the app.",
    ready: "Palaver can stand among your apps, with a window and an icon of its own.",
    apple: "In Safari's Share menu, choose “Add to Home Screen”.",
    menu: "Your browser's menu offers “Install” or “Add to Home screen”.",
    insecure: "Only pages with HTTPS, or on the machine itself, can be installed.",
  },
  install: "Install",
  installed: "Installed.",

  copy: "Offline copy",
  copyLead: "The list and the last conversations you saw, kept in this browser so that you can read them when the server does not answer. Signing out removes it.",
  copyOn: "Keep a copy on this device",
  copyNone: "There is no copy yet.",
  copyState: (conversations: number, when: string) => `${count(conversations, "conversation")}, as of ${when}.`,
  copyMissing: "This browser cannot open the page offline here: that needs HTTPS, or the machine itself.",
  copyRemove: "Remove it now",
  copyRemoved: "Removed.",

  phone: "Open on your phone",
  phoneLead: "Scan the code with the phone's camera. It signs the phone in once, within a minute.",
  phoneRole: "The phone may",
  roles: {
    owner: "Do everything",
    human: "Talk and approve",
    observer: "Only read",
  },
  phoneAddress: "Address of this server",
  phoneAddressHint: "As the phone reaches it.",
  phoneLoopback: "This address works on this machine only. Give the one your phone reaches: start the server with --host and a certificate, or put it behind a proxy.",
  phoneBad: "This is no address: it begins with http:// or https://.",
  phoneShow: "Show the code",
  phoneMaking: "Making a code …",
  phoneLeft: (seconds: number) => `Valid for ${seconds} s`,
  phoneOver: "The code is no longer valid.",
  phoneAgain: "Make a new one",
  phoneFailed: "The code could not be made.",
  phoneForbidden: "Only the server's owner can let another device in. You are signed in with fewer rights.",
  phoneAlt: "QR code of a link that signs in once",
  phoneCopy: "Copy the link instead",

  session: "Signed in",
  who: (user: string, role: string) => `As ${user}, role ${role}`,
  server: (name: string, version: string) => (name === "Palaver" ? `${name} ${version}` : `${name}, Palaver ${version}`),
  signOut: "Sign out",
} as const;
