/**
 * Faults that the page makes in simulated clusters (L4, pure): the patches that make and undo them, and what is in force. Whatever is in force stands on the objects, so
 * that it is known after the page was closed, and to other users. docs/simulated-nodes.md has the annotations.
 */
import { simulatedFailure } from '#api/helpers/nodes'
import { runtimeLabel, simulatedPrefix } from '#api/helpers/simulatedPods'
import { ownValue } from '#base/bareMap'

/** On pods with a fault: its name. */
export const faultLabel = 'skiff.dev/chaos'
/** On such pods: the annotations to restore, as JSON; null for those that were not there. */
const undoAnnotation = 'skiff.dev/chaos-undo'
/** On nodes that the page cordoned: their zone. */
const cordonAnnotation = 'skiff.dev/chaos-cordon'
const zoneLabel = 'topology.kubernetes.io/zone'

export const simulatedNodes = `${runtimeLabel.key}=${runtimeLabel.simulated}`

interface Meta {
  readonly name?: string
  readonly namespace?: string
  readonly uid?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly deletionTimestamp?: string
}

export interface FaultyPod {
  readonly metadata: Meta
  readonly spec?: {
    readonly nodeName?: string
    readonly containers?: readonly { readonly name: string; readonly readinessProbe?: object }[]
  }
  readonly status?: { readonly phase?: string; readonly containerStatuses?: readonly { readonly name: string; readonly restartCount?: number }[] }
}

export interface FaultyNode {
  readonly metadata: Meta
  readonly spec?: { readonly unschedulable?: boolean }
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
}

export const podFaults = ['crash', 'oom', 'exit', 'unready'] as const
export type PodFault = (typeof podFaults)[number]

export const faultTexts: Readonly<Record<PodFault, string>> = {
  crash: 'crash again and again',
  oom: 'be OOM-killed again and again',
  exit: 'exit once',
  unready: 'turn unready',
}

/** Greater than any count of restarts. */
const always = '1000000000'

/** The values of a container's annotations, by the end of their names. */
function sayings(fault: PodFault, restarts: number): Readonly<Record<string, string>> {
  if (fault === 'unready') return { readiness: 'fail' }
  if (fault === 'exit') return { 'exit-after-seconds': '0', 'exit-code': '0', 'exit-reason': 'Completed', 'exit-times': String(restarts + 1) }
  const [code, reason] = fault === 'oom' ? ['137', 'OOMKilled'] : ['1', 'Error']
  return { 'exit-after-seconds': '1', 'exit-code': code, 'exit-reason': reason, 'exit-times': always }
}

/** The longest name of an annotation, after the slash. */
const longestName = 63

/** The annotation for one container; for all of them where the container's name makes it too long. */
function keyOf(end: string, container: string): string {
  const key = `${simulatedPrefix}${end}`
  const own = `${key}.${container}`
  return own.length - own.indexOf('/') - 1 > longestName ? key : own
}

type Annotations = Readonly<Record<string, string | null>>

/** The annotations to restore. What others wrote there is checked: only annotations of simulated pods are ever restored. */
function restoring({ annotations = {} }: Meta): Annotations {
  let read: unknown
  try {
    read = JSON.parse(ownValue(annotations, undoAnnotation) ?? '{}')
  } catch {
    return {}
  }
  if (typeof read !== 'object' || read === null) return {}
  return Object.fromEntries(Object.entries(read).filter(([key, value]) => key.startsWith(simulatedPrefix) && (typeof value === 'string' || value === null)))
}

/** A merge patch, which another pod of the same name refuses. Undefined: the fault has no effect on the pod. */
export function faultPatch({ metadata, spec, status }: FaultyPod, fault: PodFault): object | undefined {
  const containers = (spec?.containers ?? []).filter(({ readinessProbe }) => fault !== 'unready' || readinessProbe !== undefined)
  if (containers.length === 0) return undefined
  const said: Annotations = Object.fromEntries(
    containers.flatMap(({ name }) => {
      const { restartCount = 0 } = status?.containerStatuses?.find((one) => one.name === name) ?? {}
      return Object.entries(sayings(fault, restartCount)).map(([end, value]): [string, string] => [keyOf(end, name), value])
    }),
  )
  const earlier = restoring(metadata)
  const former = (key: string) => (Object.hasOwn(earlier, key) ? (earlier[key] ?? null) : (ownValue(metadata.annotations ?? {}, key) ?? null))
  const undo = Object.fromEntries(Object.keys(said).map((key) => [key, former(key)]))
  return {
    metadata: { uid: metadata.uid, labels: { [faultLabel]: fault }, annotations: { ...earlier, ...said, [undoAnnotation]: JSON.stringify(undo) } },
  }
}

/** Restores what was before the first fault. */
export function undoPatch({ metadata }: FaultyPod): object {
  return { metadata: { uid: metadata.uid, labels: { [faultLabel]: null }, annotations: { ...restoring(metadata), [undoAnnotation]: null } } }
}

/** In the words of the page; a label of another writer as it is. */
export function faultOf({ metadata }: FaultyPod): string {
  const label = metadata.labels?.[faultLabel] ?? ''
  return ownValue<string>(faultTexts, label) ?? label
}

export const failNodePatch = (message: string): object => ({ metadata: { annotations: { [simulatedFailure]: message } } })
export const recoverNodePatch: object = { metadata: { annotations: { [simulatedFailure]: null } } }
/** Why the node fails; undefined: it does not. */
export const failureOf = ({ metadata }: FaultyNode): string | undefined => ownValue(metadata.annotations ?? {}, simulatedFailure)

export const cordonZonePatch = (zone: string): object => ({ metadata: { annotations: { [cordonAnnotation]: zone } }, spec: { unschedulable: true } })
export const uncordonZonePatch: object = { metadata: { annotations: { [cordonAnnotation]: null } }, spec: { unschedulable: null } }

export interface Zone {
  readonly name: string
  readonly nodes: readonly FaultyNode[]
  /** Those that take pods: cordoning the zone changes them. */
  readonly open: readonly FaultyNode[]
  /** Those that the page cordoned. Others stay as their users left them. */
  readonly cordoned: readonly FaultyNode[]
}

/** By name. Nodes without a zone are in none. */
export function zonesOf(nodes: readonly FaultyNode[]): Zone[] {
  const byZone = new Map<string, FaultyNode[]>()
  for (const node of nodes) {
    const zone = node.metadata.labels?.[zoneLabel]
    if (zone !== undefined) byZone.set(zone, [...(byZone.get(zone) ?? []), node])
  }
  return [...byZone]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, members]) => ({
      name,
      nodes: members,
      open: members.filter(({ spec }) => !spec?.unschedulable),
      cordoned: members.filter(({ spec, metadata }) => spec?.unschedulable && ownValue(metadata.annotations ?? {}, cordonAnnotation) !== undefined),
    }))
}

export const zoneOf = ({ metadata }: FaultyNode): string => metadata.labels?.[zoneLabel] ?? ''

export const isReady = ({ status }: FaultyNode): boolean => (status?.conditions ?? []).some(({ type, status: value }) => type === 'Ready' && value === 'True')

/** The namespace of the cluster's own pods, which are chosen only where the user names it. */
const ownNamespace = 'kube-system'

/** The pods that faults may choose: on simulated nodes, and neither over nor ending. @param scope the namespace that the user chose; empty: all */
export function candidates<Pod extends FaultyPod>(pods: readonly Pod[], nodes: ReadonlySet<string>, scope: string): Pod[] {
  return pods.filter(({ metadata, spec, status }) => {
    const isOver = status?.phase === 'Succeeded' || status?.phase === 'Failed' || metadata.deletionTimestamp !== undefined
    return !isOver && nodes.has(spec?.nodeName ?? '') && (scope !== '' || metadata.namespace !== ownNamespace)
  })
}

/** So many of them, each at most once. @param random from 0 to less than 1 */
export function someOf<T>(all: readonly T[], count: number, random: () => number): T[] {
  const mixed = [...all]
  const taken = Math.min(count, mixed.length)
  for (let at = 0; at < taken; at++) {
    const from = at + Math.floor(random() * (mixed.length - at))
    const one = mixed[from] as T
    mixed[from] = mixed[at] as T
    mixed[at] = one
  }
  return mixed.slice(0, taken)
}

export const mostPerMinute = 600
export const mostMinutes = 60

/** What a run of deletions sends for a pod: an eviction, which disruption budgets may refuse, or a deletion. Another pod of the same name is not meant. */
export function removalOf(
  { metadata: { namespace = '', name = '', uid } }: FaultyPod,
  isEviction: boolean,
): { readonly method: string; readonly body: object } {
  const preconditions = { uid }
  if (!isEviction) return { method: 'DELETE', body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions } }
  return { method: 'POST', body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace, name }, deleteOptions: { preconditions } } }
}

/** The first names, for questions. */
export function namesOf(objects: readonly { readonly metadata: Meta }[]): string {
  const names = objects.slice(0, 5).map(({ metadata: { namespace, name } }) => (namespace ? `${namespace}/${name}` : name))
  return `${names.join(', ')}${objects.length > names.length ? ', …' : ''}`
}
