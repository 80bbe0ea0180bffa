/**
 * Field selectors (L1): `metadata.name=x,status.phase!=Running`. Which fields a kind knows is its own file's matter.
 * Upstream: apimachinery/pkg/fields/selector.go (v1.36).
 */
import { badRequest } from './status.ts'

export interface FieldTerm {
  readonly field: string
  readonly operator: '=' | '!='
  readonly value: string
}

export interface FieldSelector {
  readonly terms: readonly FieldTerm[]
  readonly isEmpty: boolean
  /** `get` returns a field's value; every term must hold. */
  matches(get: (field: string) => string): boolean
  /** The value that the field must equal, if a term demands one: turns a LIST by name into a GET. */
  requiresExactMatch(field: string): string | undefined
  toString(): string
}

/** @throws Status BadRequest with upstream's message */
export function parseFieldSelector(text: string): FieldSelector {
  return fieldSelectorOf(
    splitTerms(text)
      .sort()
      .filter((part) => part !== '')
      .map((part) => {
        const match = /^(.*?)(!=|==|=)(.*)$/s.exec(part)
        if (!match) throw badRequest(`invalid selector: '${text}'; can't understand '${part}'`)
        return { field: match[1] ?? '', operator: match[2] === '!=' ? '!=' : '=', value: unescapeValue(match[3] ?? '') } as const
      }),
  )
}

/** The selector of terms already parsed. */
function fieldSelectorOf(terms: readonly FieldTerm[]): FieldSelector {
  return {
    terms,
    isEmpty: terms.length === 0,
    matches: (get) => terms.every(({ field, operator, value }) => (get(field) === value) === (operator === '=')),
    requiresExactMatch: (field) => terms.find((term) => term.field === field && term.operator === '=')?.value,
    toString: () => terms.map(({ field, operator, value }) => `${field}${operator}${escapeValue(value)}`).join(','),
  }
}

function escapeValue(value: string): string {
  return value.replace(/[\\,=]/g, '\\$&')
}

function splitTerms(text: string): string[] {
  const terms: string[] = []
  let start = 0
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '\\') i++
    else if (text[i] === ',') {
      terms.push(text.slice(start, i))
      start = i + 1
    }
  }
  terms.push(text.slice(start))
  return terms
}

function unescapeValue(text: string): string {
  let value = ''
  for (let i = 0; i < text.length; i++) {
    const char = text[i] as string
    if (char === '\\') {
      const next = text[++i] ?? ''
      if (next === '' || !'\\,='.includes(next)) throw badRequest(`invalid field selector: invalid escape sequence: \\${next}`)
      value += next
    } else if (char === ',' || char === '=') throw badRequest(`invalid field selector: unescaped character in value: ${char.charCodeAt(0)}`)
    else value += char
  }
  return value
}
