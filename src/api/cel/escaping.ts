/**
 * Names of properties as identifiers of CEL (L1). Upstream: apiserver/pkg/cel/escaping.go (v1.36).
 */
import { bareMap } from '#base/bareMap'
import { reservedWords } from '#cel/syntax/operators'

const escapes: Readonly<Record<string, string>> = bareMap({ __: '__underscores__', '.': '__dot__', '-': '__dash__', '/': '__slash__' })

/** How expressions write a property; undefined when they cannot. */
export function escapeIdentifier(property: string): string | undefined {
  if (!/^[a-zA-Z_./-][a-zA-Z0-9_./-]*$/.test(property)) return undefined
  if (reservedWords.has(property)) return `__${property}__`
  return property.replace(/__|[-./]/g, (part) => escapes[part]!)
}

const unescapes: ReadonlyMap<string, string> = new Map(Object.entries(escapes).map(([plain, escaped]) => [escaped, plain]))

/** The property that an identifier writes; undefined when no property is written so. */
export function unescapeIdentifier(identifier: string): string | undefined {
  let known = true
  const property = identifier.replace(/__[a-zA-Z]+__/g, (part) => {
    const plain = unescapes.get(part)
    if (plain !== undefined) return plain
    const word = part.slice(2, -2)
    known &&= part.length === identifier.length && reservedWords.has(word)
    return word
  })
  return known ? property : undefined
}
