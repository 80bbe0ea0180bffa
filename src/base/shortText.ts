/** Shortens texts that are kept (L0). A slice would keep the whole text in memory: the engine shares its characters. */

/** The text itself, or a copy of its first `most` characters and an ellipsis. */
export function shortText(text: string, most: number): string {
  return text.length <= most ? text : `${Buffer.from(text.slice(0, most)).toString()}…`
}
