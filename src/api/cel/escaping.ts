/**
 * Names of properties as identifiers of CEL (L1). Upstream: apiserver/pkg/cel/escaping.go (v1.36).
 */
import { reservedWords } from '#cel/syntax/operators'

const escapes: Readonly<Record<string, string>> = { __: '__underscores__', '.': '__dot__', '-': '__dash__', '/': '__slash__' }

/** How expressions write a property; undefined when they cannot. */
export function escapeIdentifier(property: string): string | undefined {
  if (!/^[a-zA-Z_./-][a-zA-Z0-9_./-]*$/.test(property)) return undefined
  if (reservedWords.has(property)) return `__${property}__`
  return property.replace(/__|[-./]/g, (part) => escapes[part]!)
}
