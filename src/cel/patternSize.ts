/**
 * How many instructions a regular expression compiles to (L1, pure), estimated from its text: counted repetitions are copies, so `(a?){50}` is fifty times
 * `a?`. The estimate needs no valid pattern.
 */

/** Unicode classes such as \pL have hundreds of ranges. */
const unicodeClassSize = 50

/** @returns at least the length of the expanded pattern in atoms */
export function patternSize(pattern: string): number {
  /** Size of each open group so far, the whole pattern first. */
  const groups = [0]
  /** Size of the last atom, which a repetition multiplies. */
  let atom = 0
  const add = (size: number) => {
    atom = size
    groups[groups.length - 1] = (groups.at(-1) ?? 0) + size
  }
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern[at]
    if (character === '\\') {
      at++
      const isUnicode = /[pP]/.test(pattern[at] ?? '')
      if (isUnicode) at = pattern[at + 1] === '{' ? Math.max(at, pattern.indexOf('}', at)) : at + 1
      add(isUnicode ? unicodeClassSize : 1)
    } else if (character === '[') {
      const end = endOfClass(pattern, at)
      add(1 + unicodeClassSize * (pattern.slice(at, end).match(/\\[pP]/g)?.length ?? 0))
      at = end
    } else if (character === '(') groups.push(1)
    else if (character === ')' && groups.length > 1) add(groups.pop() ?? 0)
    else if (character === '{') {
      const counted = /^\{(\d+)(,(\d*))?\}/.exec(pattern.slice(at, at + 16))
      if (!counted) add(1)
      else {
        const [text, least, range, most] = counted
        const copies = Math.max(1, Number(most || least) + (range !== undefined && !most ? 1 : 0))
        add(atom * (copies - 1))
        at += text.length - 1
      }
    } else add(1)
  }
  return groups.reduce((sum, size) => sum + size, 0)
}

/** Position of the bracket that closes the class; a bracket directly behind the opening is one of its characters. */
function endOfClass(pattern: string, start: number): number {
  let at = start + 1
  if (pattern[at] === '^') at++
  if (pattern[at] === ']') at++
  while (at < pattern.length && pattern[at] !== ']') at += pattern[at] === '\\' ? 2 : 1
  return at
}
