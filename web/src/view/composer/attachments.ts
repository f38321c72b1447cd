/** Images that go with the next message: pasted, dropped or chosen, uploaded at once, kept while the page lives. */

import { useCallback, useEffect, useState } from "react";
import type { Part } from "../../protocol/events.gen";
import { said } from "../../sentences";
import { text } from "../../text";
import { useStore } from "../store";

// The server's own bounds (docs/operating.md): said before anything is sent.
const IMAGE_BYTES = 10 * 1024 * 1024;
const IMAGES = 10;

export interface Attachment {
  key: string;
  name: string;
  /** For the eye, from this device's memory. */
  preview: string;
  /** Where the server keeps it; null while it is on its way. */
  url: string | null;
  error: string | null;
}

const kept = new Map<string, readonly Attachment[]>();
let nextKey = 1;

export interface Attachments {
  items: readonly Attachment[];
  /** Why the last file was not taken. */
  refusal: string | null;
  busy: boolean;
  add: (files: Iterable<File>) => void;
  remove: (key: string) => void;
  clear: () => void;
}

export function useAttachments(place: string): Attachments {
  const store = useStore();
  const [items, setItems] = useState<readonly Attachment[]>(() => kept.get(place) ?? []);
  const [refusal, setRefusal] = useState<string | null>(null);
  useEffect(() => {
    kept.set(place, items);
  }, [place, items]);

  const add = useCallback(
    (files: Iterable<File>) => {
      for (const file of files) {
        const refused = whyNot(file, (kept.get(place) ?? []).length);
        setRefusal(refused);
        if (refused !== null) continue;
        const key = String(nextKey);
        nextKey += 1;
        const fresh: Attachment = { key, name: file.name, preview: URL.createObjectURL(file), url: null, error: null };
        setItems((now) => [...now, fresh]);
        const settle = (change: Partial<Attachment>): void =>
          setItems((now) => now.map((item) => (item.key === key ? { ...item, ...change } : item)));
        store.upload(file, file.name || "image").then(
          (upload) => settle({ url: upload.url }),
          (error: unknown) => settle({ error: error instanceof Error ? said(error.message) : text.composer.uploadFailed }),
        );
      }
    },
    [store, place],
  );

  const remove = useCallback((key: string) => {
    setItems((now) => {
      const gone = now.find((item) => item.key === key);
      if (gone) URL.revokeObjectURL(gone.preview);
      return now.filter((item) => item.key !== key);
    });
    setRefusal(null);
  }, []);

  const clear = useCallback(() => {
    setItems((now) => {
      for (const item of now) URL.revokeObjectURL(item.preview);
      return [];
    });
    setRefusal(null);
  }, []);

  const busy = items.some((item) => item.url === null && item.error === null);
  return { items, refusal, busy, add, remove, clear };
}

function whyNot(file: File, held: number): string | null {
  if (!file.type.startsWith("image/")) return text.composer.notAnImage;
  if (file.size > IMAGE_BYTES) return text.composer.imageTooLarge;
  return held >= IMAGES ? text.composer.tooManyImages : null;
}

export function contentOf(words: string, items: readonly Attachment[]): string | Part[] {
  const images = items.flatMap((item): Part[] => (item.url === null ? [] : [{ type: "image_url", image_url: { url: item.url } }]));
  if (images.length === 0) return words;
  return words.trim() === "" ? images : [{ type: "text", text: words }, ...images];
}
