/** The subject alternative names of a certificate (L3, pure), from the text that Node gives: `DNS:a.test, URI:spiffe://a, DNS:"with, a comma"`. */
import { wildcardOf } from './hostName.ts'
import type { SubjectAltName } from './route.ts'

export interface AltName {
  readonly type: string
  readonly value: string
}

/** Names of other kinds are there, too. What does not have the form of a name ends the list: a value with a comma is quoted, so that it cannot be two. */
export function altNamesOf(text: string): AltName[] {
  const names: AltName[] = []
  const one = /([^:,"]+):("(?:[^"\\]|\\.)*"|[^,"]*)(?:, |$)/y
  for (let found = one.exec(text); found; found = one.exec(text)) {
    const [, type = '', value = ''] = found
    const plain = value.startsWith('"') ? unquoted(value) : value
    if (plain !== undefined) names.push({ type, value: plain })
    if (one.lastIndex >= text.length) break
  }
  return names
}

/** As JSON writes a string. */
function unquoted(value: string): string | undefined {
  try {
    return String(JSON.parse(value))
  } catch {
    return undefined
  }
}

/** A wildcard of the certificate covers one label of a wanted name; URIs are compared as they are. */
export function matchesAltName(wanted: SubjectAltName, { type, value }: AltName): boolean {
  if (wanted.type === 'URI') return type === 'URI' && value === wanted.value
  const name = value.toLowerCase()
  return type === 'DNS' && (name === wanted.value || (!wanted.value.startsWith('*') && name.startsWith('*.') && name === wildcardOf(wanted.value)))
}
