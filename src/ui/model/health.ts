/** What is unhealthy, and why, from the rows that the server prints (L4, pure). Statuses are the server's; explanations are ours. */
import { timeOfEvent } from '#api/helpers/events'
import { bareMap } from '#base/bareMap'
import { parseTime } from '#base/time'
import { type Column, cellText, type Row, type Rows } from './tables.ts'

export { timeOfEvent }

export type Tone = 'good' | 'busy' | 'bad' | 'quiet'

const good = new Set(['Running', 'Ready', 'Active', 'Bound', 'Complete', 'Succeeded', 'Completed', 'True', 'Available', 'Approved,Issued', 'Established'])
const busy = /^(Pending|ContainerCreating|PodInitializing|Init:\d+\/\d+|Terminating|Released|SchedulingGated|Suspended|FailureTarget|Progressing|Unknown)$/
const bad = /Error|BackOff|Err[A-Z]|Failed|Failure|NotReady|Evicted|OOMKilled|Invalid|Lost|Cannot|Never|DeadlineExceeded|UnexpectedAdmission|NodeLost|Warning/

/** How a word of a status column is shown. */
export function toneOf(text: string): Tone {
  if (bad.test(text)) return 'bad'
  if (text.includes('SchedulingDisabled') || busy.test(text)) return 'busy'
  return good.has(text) ? 'good' : 'quiet'
}

export interface Table {
  readonly columns: readonly Column[]
  readonly rows: Rows
}

export interface Problem {
  readonly namespace: string
  readonly name: string
  readonly tone: 'bad' | 'busy'
  /** As the server prints it. */
  readonly status: string
  /** One sentence on what the numbers say; the events say why. */
  readonly text: string
}

/** How long something may be on its way before it counts. */
const patienceMs = 30_000

type Judge = (cell: (column: string) => string, row: Row) => Pick<Problem, 'tone' | 'status' | 'text'> | undefined

/** The kinds whose tables say how they are, by resource. */
const judges: Readonly<Record<string, Judge>> = bareMap({
  pods: (cell) => {
    const status = cell('Status')
    const tone = toneOf(status)
    const [ready, all] = counts(cell('Ready'))
    if (tone === 'bad') return { tone, status, text: restartsText(cell('Restarts')) }
    if (tone === 'busy') return { tone, status, text: status === 'Pending' ? 'not started on any node yet' : `${ready} of ${all} containers are ready` }
    return status === 'Running' && ready < all ? { tone: 'bad', status: 'NotReady', text: `${ready} of ${all} containers are ready` } : undefined
  },
  nodes: (cell) => {
    const status = cell('Status')
    const tone = toneOf(status)
    if (tone === 'bad') return { tone, status, text: 'its pods are not updated, and may be evicted' }
    return tone === 'busy' ? { tone, status, text: 'takes no new pods' } : undefined
  },
  deployments: (cell) => behind(cell('Ready'), 'replicas are ready'),
  statefulsets: (cell) => behind(cell('Ready'), 'replicas are ready'),
  daemonsets: (cell) => behind(`${cell('Ready')}/${cell('Desired')}`, 'nodes have a ready pod'),
  jobs: (cell) => {
    const status = cell('Status')
    return toneOf(status) === 'bad' ? { tone: 'bad', status, text: `${cell('Completions')} completions` } : undefined
  },
  persistentvolumeclaims: (cell) => {
    const status = cell('Status')
    return status === 'Bound' ? undefined : { tone: status === 'Lost' ? 'bad' : 'busy', status, text: 'has no volume' }
  },
  namespaces: (cell) => (cell('Status') === 'Terminating' ? { tone: 'busy', status: 'Terminating', text: 'is being deleted' } : undefined),
})

export const judgedResources: readonly string[] = Object.keys(judges)

function behind(cell: string, what: string): ReturnType<Judge> {
  const [ready, all] = counts(cell)
  return ready < all ? { tone: ready === 0 ? 'bad' : 'busy', status: `${ready}/${all}`, text: `${ready} of ${all} ${what}` } : undefined
}

function counts(cell: string): readonly [number, number] {
  const [ready = 0, all = 0] = cell.split('/').map(Number)
  return [ready, all]
}

const restartsText = (restarts: string) => (restarts === '' || restarts === '0' ? 'has not started' : `restarted ${restarts}`)

/** The worst first. Things that are new are on their way, unless they say that they failed. */
export function problemsOf(resource: string, { columns, rows }: Table, nowMs: number): Problem[] {
  const judge = judges[resource]
  if (!judge) return []
  const indexes = new Map(columns.map(({ name }, index) => [name, index]))
  const problems: Problem[] = []
  for (const row of rows.values()) {
    const found = judge((column) => cellText(row.cells[indexes.get(column) ?? -1]), row)
    const { name = '', namespace = '', creationTimestamp = '' } = row.object.metadata
    const isNew = nowMs - (parseTime(creationTimestamp) ?? nowMs) < patienceMs
    if (found && !(isNew && found.tone === 'busy')) problems.push({ name, namespace, ...found })
  }
  return problems.sort((one, other) => Number(other.tone === 'bad') - Number(one.tone === 'bad'))
}

export interface EventObject {
  readonly metadata: { readonly name?: string; readonly namespace?: string; readonly creationTimestamp?: string; readonly uid?: string }
  readonly type?: string
  readonly reason?: string
  readonly message?: string
  readonly note?: string
  readonly count?: number
  readonly lastTimestamp?: string | null
  readonly eventTime?: string | null
  readonly series?: { readonly count?: number; readonly lastObservedTime?: string }
  readonly source?: { readonly component?: string }
  readonly reportingComponent?: string
  readonly involvedObject?: { readonly kind?: string; readonly namespace?: string; readonly name?: string; readonly uid?: string }
}

/** The kubelet repeats the status of a container as `Error: ImagePullBackOff`: another warning says more. */
const isEcho = ({ message = '' }: EventObject) => /^Error: \w+$/.test(message)

const isBetter = (one: EventObject, other: EventObject) => (isEcho(one) === isEcho(other) ? timeOfEvent(other) <= timeOfEvent(one) : isEcho(other))

/** The last warning about each object, by `Kind/namespace/name`. */
export function warningsByObject(events: Iterable<EventObject>): Map<string, EventObject> {
  const last = new Map<string, EventObject>()
  for (const event of events) {
    const { kind = '', namespace = '', name = '' } = event.involvedObject ?? {}
    const key = `${kind}/${namespace}/${name}`
    const known = last.get(key)
    if (event.type === 'Warning' && (!known || isBetter(event, known))) last.set(key, event)
  }
  return last
}
