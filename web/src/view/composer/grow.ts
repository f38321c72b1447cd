/** A text field as high as its text, up to what its style allows. */

import { useLayoutEffect, type RefObject } from "react";

export function useAutoGrow(field: RefObject<HTMLTextAreaElement | null>, value: string): void {
  useLayoutEffect(() => {
    const element = field.current;
    if (element === null) return;
    element.style.height = "auto";
    element.style.height = `${element.scrollHeight}px`;
  }, [field, value]);
}
