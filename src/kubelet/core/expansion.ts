/**
 * $(VAR) references in commands, arguments and environment values (L3, pure). Upstream: third_party/forked/golang/expansion (v1.36), which has
 * no bound: references to values that are references themselves double with each step. Here no text grows beyond what a kernel starts.
 */

/** Linux refuses a longer argument or environment variable: MAX_ARG_STRLEN. */
export const maxWordLength = 128 * 1024
/** Linux never accepts more arguments and environment than this together: 3/4 of _STK_LIM. */
export const maxWordsLength = 6 * 1024 * 1024

export type Lookup = (name: string) => string | undefined

/**
 * Replaces every $(NAME) that `lookup` knows. $$ stands for one dollar, so $$(NAME) stays a literal $(NAME);
 * references to unknown names and unfinished references stay as they are written.
 * @throws Error when references make the text longer than `maxLength`
 */
export function expand(input: string, lookup: Lookup, maxLength = maxWordLength): string {
  const allowed = Math.max(maxLength, input.length)
  const parts: string[] = []
  let length = 0
  const add = (part: string) => {
    length += part.length
    if (length > allowed) throw new Error(`references in ${quoted(input)} expand to more than ${maxLength} characters`)
    parts.push(part)
  }
  let copied = 0
  // Looked for once: a text of nothing but openers would be read to its end for each of them.
  const lastCloser = input.lastIndexOf(')')
  for (let at = input.indexOf('$'); at >= 0; at = input.indexOf('$', copied)) {
    const next = input[at + 1]
    add(input.slice(copied, at))
    copied = at + 1
    if (next === '$') {
      add('$')
      copied++
      continue
    }
    if (next !== '(' || at + 2 > lastCloser) {
      add('$')
      continue
    }
    const closer = input.indexOf(')', at + 2)
    const value = lookup(input.slice(at + 2, closer))
    add(value ?? input.slice(at, closer + 1))
    copied = closer + 1
  }
  add(input.slice(copied))
  return parts.join('')
}

/** @throws Error when one of the words, or all together, become longer than a kernel accepts. `taken`: the length of what goes with them */
export function expandWords(words: readonly string[], lookup: Lookup, taken = 0): string[] {
  let length = taken
  return words.map((word) => {
    const expanded = expand(word, lookup)
    length += expanded.length
    // Without references it is no longer than the pod.
    if (length > maxWordsLength && expanded.length > word.length)
      throw new Error(`command, arguments and environment expand to more than ${maxWordsLength} characters`)
    return expanded
  })
}

const maxQuotedLength = 64
const quoted = (text: string) => JSON.stringify(text.length > maxQuotedLength ? `${text.slice(0, maxQuotedLength)}…` : text)
