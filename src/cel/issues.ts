/**
 * Prints the faults of an expression (L1, pure) as users of CEL know them: line, column, the line itself and a caret.
 * Upstream: cel-go common/errors.go, common/error.go (v0.26).
 */
import type { Issue } from './environment.ts'

const maxIssues = 100
/** Lines longer than this are not printed below the message. */
const maxLineLength = 16_384

/** All faults, in the order of the text, one below the other. */
export function formatIssues(source: string, issues: readonly Issue[]): string {
  const sorted = [...issues].sort((a, b) => a.offset - b.offset)
  const texts = sorted.slice(0, maxIssues).map((issue) => formatIssue(source, issue))
  if (sorted.length > maxIssues) texts.push(`${sorted.length - maxIssues} more errors were truncated`)
  return texts.join('\n')
}

function formatIssue(source: string, { message, offset }: Issue): string {
  const before = source.slice(0, offset).split('\n')
  const column = [...before.at(-1)!].length
  const line = source.split('\n')[before.length - 1]!.replaceAll('\t', ' ')
  const head = `ERROR: <input>:${before.length}:${column + 1}: ${message}`
  if (line.length > maxLineLength) return head
  // Wide characters get wide marks, so that the caret stands below what it points to.
  const characters = [...line]
  const wide = (character: string | undefined): boolean => character !== undefined && character > '\x7f'
  const dots = characters.slice(0, column).map((character) => (wide(character) ? '\uff0e' : '.'))
  return `${head}\n | ${line}\n | ${dots.join('')}${wide(characters[column]) ? '\uff3e' : '^'}`
}
