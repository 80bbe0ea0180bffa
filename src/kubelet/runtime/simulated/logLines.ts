/** How many lines the log of a simulated container keeps (L3). */

/** Older lines make room. */
export const maxLogLines = 10_000

/** The lines of a text that a log keeps: the last ones. */
export function lastLines(text: string): string[] {
  let start = text.length
  for (let count = 0; count < maxLogLines && start >= 0; count++) start = start === 0 ? -1 : text.lastIndexOf('\n', start - 1)
  return text.slice(start + 1).split('\n')
}
