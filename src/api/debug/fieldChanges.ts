/**
 * The fields in which two versions of an object differ (L1). Lists whose items have unique names or types are compared by those. Values of Secrets are
 * masked as `kubectl diff` masks them.
 */
import { stringifyExactly } from '../machinery/exactIntegers.ts'

export interface FieldChange {
  /** data.color, spec.containers[web].image */
  readonly path: string
  /** Absent: the field was added. */
  readonly from?: unknown
  /** Absent: the field was removed. */
  readonly to?: unknown
}

/** They change with every write and say nothing by themselves. */
const ignored: ReadonlySet<string> = new Set(['metadata.resourceVersion', 'metadata.managedFields'])
const mostDepth = 100
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

export function fieldChanges(before: unknown, after: unknown, options: { readonly showSecrets: boolean }): FieldChange[] {
  const changes: FieldChange[] = []
  compare('', before, after, changes, 0)
  const { kind, apiVersion } = (after ?? before ?? {}) as { kind?: string; apiVersion?: string }
  return options.showSecrets || kind !== 'Secret' || apiVersion !== 'v1' ? changes : changes.map(masked)
}

/** Upstream: kubectl/pkg/cmd/diff, Masker. */
function masked(change: FieldChange): FieldChange {
  if (!/^(data|stringData)(\.|$|\[)/.test(change.path) && !change.path.includes(lastApplied) && change.path !== 'metadata.annotations') return change
  const isBoth = change.from !== undefined && change.to !== undefined
  return {
    path: change.path,
    ...(change.from === undefined ? {} : { from: isBoth ? '*** (before)' : '***' }),
    ...(change.to === undefined ? {} : { to: isBoth ? '*** (after)' : '***' }),
  }
}

function compare(path: string, before: unknown, after: unknown, changes: FieldChange[], depth: number): void {
  if (ignored.has(path) || before === after) return
  const [left, right] = depth < mostDepth ? [membersOf(before), membersOf(after)] : []
  if (!left || !right || left.isList !== right.isList) {
    if (stringifyExactly(before) === stringifyExactly(after)) return
    changes.push({ path, ...(before === undefined ? {} : { from: before }), ...(after === undefined ? {} : { to: after }) })
    return
  }
  // By index where one of the two has no keys.
  const [one, other] =
    left.isList && left.isKeyed !== right.isKeyed ? [byIndex(before as unknown[]), byIndex(after as unknown[])] : [left.members, right.members]
  for (const key of new Set([...one.keys(), ...other.keys()])) compare(join(path, key, left.isList), one.get(key), other.get(key), changes, depth + 1)
}

interface Members {
  readonly isList: boolean
  readonly isKeyed: boolean
  readonly members: ReadonlyMap<string, unknown>
}

function membersOf(value: unknown): Members | undefined {
  if (Array.isArray(value)) {
    for (const key of ['name', 'type']) {
      const named = new Map(value.map((item) => [(item as Record<string, unknown> | null)?.[key], item] as const))
      if (named.size === value.length && [...named.keys()].every((name) => typeof name === 'string')) {
        return { isList: true, isKeyed: true, members: named as ReadonlyMap<string, unknown> }
      }
    }
    return { isList: true, isKeyed: false, members: byIndex(value) }
  }
  if (typeof value === 'object' && value !== null) return { isList: false, isKeyed: true, members: new Map(Object.entries(value)) }
  return undefined
}

function byIndex(list: readonly unknown[]): ReadonlyMap<string, unknown> {
  return new Map(list.map((item, at) => [String(at), item]))
}

function join(path: string, key: string, isList: boolean): string {
  if (isList) return `${path}[${key}]`
  const part = /^[\w-]+$/.test(key) ? key : JSON.stringify(key)
  return path === '' ? part : `${path}.${part}`
}

const mostShown = 100
const mostValueLength = 200

/** One line each. */
export function describeChanges(changes: readonly FieldChange[]): string[] {
  const lines = changes.slice(0, mostShown).map(({ path, from, to }) => {
    if (from === undefined) return `+ ${path}: ${valueText(to)}`
    return to === undefined ? `- ${path}: ${valueText(from)}` : `~ ${path}: ${valueText(from)} -> ${valueText(to)}`
  })
  return changes.length > mostShown ? [...lines, `… and ${changes.length - mostShown} more fields`] : lines
}

function valueText(value: unknown): string {
  const text = typeof value === 'string' && value.startsWith('***') ? value : (stringifyExactly(value) ?? '')
  return text.length > mostValueLength ? `${text.slice(0, mostValueLength)}…` : text
}
