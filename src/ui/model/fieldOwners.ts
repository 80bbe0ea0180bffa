/** The writer of each field (L4, pure): managed fields as paths, by manager. */

export interface ManagedFields {
  readonly manager?: string
  readonly operation?: string
  readonly subresource?: string
  readonly time?: string
  readonly fieldsV1?: unknown
}

export interface FieldOwner {
  readonly manager: string
  /** Update or Apply, and the subresource. */
  readonly how: string
  readonly time: string
  readonly paths: readonly string[]
}

export function fieldOwners(entries: readonly ManagedFields[]): FieldOwner[] {
  return entries.map(({ manager = '', operation = '', subresource, time = '', fieldsV1 }) => ({
    manager,
    how: subresource ? `${operation} of ${subresource}` : operation,
    time,
    paths: pathsOf(fieldsV1, ''),
  }))
}

/** The leaves of a set of fields: `f:` is a member, `k:` an element by its keys, `v:` one by its value, `.` the whole. */
function pathsOf(fields: unknown, path: string): string[] {
  const members = Object.entries((fields ?? {}) as Readonly<Record<string, unknown>>).filter(([key]) => key !== '.')
  if (members.length === 0) return path === '' ? [] : [path]
  return members.flatMap(([key, below]) => pathsOf(below, path + step(key, path === '')))
}

function step(key: string, isFirst: boolean): string {
  const [type, text] = [key.slice(0, 2), key.slice(2)]
  if (type === 'f:') return `${isFirst ? '' : '.'}${text}`
  if (type === 'k:') return `[${Object.entries(parsed(text)).map(([name, value]) => `${name}=${String(value)}`)}]`
  return `[${text}]`
}

function parsed(text: string): object {
  try {
    return JSON.parse(text) as object
  } catch {
    return {}
  }
}
