/**
 * Reads the fields of one of kubeadm's documents by name (L4, pure): what has another type is refused with its path; what has no effect here, and what kubeadm does
 * not know, becomes a warning with its path.
 */
import { CommandError } from '../exitCodes.ts'

/** What a reader collects. Field names are those of the document. */
export interface FieldReport {
  readonly warnings: string[]
}

export interface Fields {
  text(name: string): string | undefined
  whole(name: string, min: number, max: number): number | undefined
  flag(name: string): boolean | undefined
  texts(name: string): readonly string[] | undefined
  /** The fields of an object; undefined: it is absent. The caller ends it. */
  object(name: string): Fields | undefined
  objects(name: string): readonly Fields[]
  /** A list of names and values, or, in v1beta3, a map. */
  args(name: string): readonly Arg[]
  /** A field without effect here. */
  ignored(name: string, why: string): void
  /** @throws CommandError usage when the field is set */
  refused(name: string, why: string): void
  /** Where a field is, for messages. */
  at(name: string): string
  /** Warns about the fields that were not asked for. */
  end(): void
}

export interface Arg {
  readonly name: string
  readonly value: string
  /** For messages. */
  readonly at: string
}

/** @param at the path of the object: empty for a document */
export function fieldsOf(value: unknown, at: string, report: FieldReport): Fields {
  if (!isObject(value)) throw unexpected(at || 'the document', 'an object')
  const asked = new Set<string>()
  const path = (name: string) => (at === '' ? name : `${at}.${name}`)
  const take = (name: string): unknown => {
    asked.add(name)
    return Object.hasOwn(value, name) ? (value[name] ?? undefined) : undefined
  }
  const list = (name: string): readonly unknown[] | undefined => {
    const found = take(name)
    if (found === undefined || Array.isArray(found)) return found as readonly unknown[] | undefined
    throw unexpected(path(name), 'a list')
  }
  const typed = <T>(name: string, is: (found: unknown) => found is T, what: string): T | undefined => {
    const found = take(name)
    if (found === undefined || is(found)) return found as T | undefined
    throw unexpected(path(name), what)
  }
  return {
    text: (name) => typed(name, isText, 'a text') || undefined,
    whole(name, min, max) {
      const expected = `a whole number from ${min} to ${max}`
      const found = typed(name, (one): one is number => typeof one === 'number' && Number.isInteger(one), expected)
      if (found !== undefined && (found < min || found > max)) throw unexpected(path(name), expected)
      return found
    },
    flag: (name) => typed(name, (one): one is boolean => typeof one === 'boolean', 'true or false'),
    texts(name) {
      const found = list(name)
      if (found && !found.every(isText)) throw unexpected(path(name), 'a list of texts')
      return found as readonly string[] | undefined
    },
    object(name) {
      const found = take(name)
      return found === undefined ? undefined : fieldsOf(found, path(name), report)
    },
    objects: (name) => (list(name) ?? []).map((one, index) => fieldsOf(one, `${path(name)}[${index}]`, report)),
    args: (name) => argsOf(take(name), path(name), report),
    ignored(name, why) {
      if (take(name) !== undefined) report.warnings.push(`${path(name)}: ${why}`)
    },
    refused(name, why) {
      const found = take(name)
      if (found !== undefined && found !== false) throw new CommandError('usage', `${path(name)}: ${why}`)
    },
    at: path,
    end() {
      for (const name of Object.keys(value)) if (!asked.has(name)) report.warnings.push(`${path(name)}: kubeadm has no such field: it is left out`)
    },
  }
}

function argsOf(found: unknown, at: string, report: FieldReport): readonly Arg[] {
  if (found === undefined) return []
  if (Array.isArray(found)) {
    return found.map((one, index) => {
      const fields = fieldsOf(one, `${at}[${index}]`, report)
      const [name, value] = [fields.text('name'), fields.text('value')]
      fields.end()
      if (name === undefined) throw new CommandError('usage', `${at}[${index}].name: it is missing`)
      return { name, value: value ?? '', at: `${at}[${index}]` }
    })
  }
  if (!isObject(found)) throw unexpected(at, 'a list of names and values')
  report.warnings.push(`${at}: a map is the form of v1beta3; v1beta4 has a list of names and values`)
  return Object.entries(found).map(([name, value]) => {
    if (!isText(value)) throw unexpected(`${at}.${name}`, 'a text: true and numbers are quoted')
    return { name, value, at: `${at}.${name}` }
  })
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function unexpected(at: string, what: string): CommandError {
  return new CommandError('usage', `${at}: expected ${what}`)
}
