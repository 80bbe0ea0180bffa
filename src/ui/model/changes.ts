/** What the page's actions send (L4, pure): patches for scaling, restarting, rolling back and cordoning, and the pods that a drain evicts. */

interface Meta {
  readonly name?: string
  readonly namespace?: string
  readonly uid?: string
  readonly annotations?: Readonly<Record<string, string>>
  readonly ownerReferences?: readonly { readonly uid: string; readonly kind: string; readonly name: string; readonly controller?: boolean }[]
  readonly deletionTimestamp?: string
  readonly creationTimestamp?: string
}

/** What `kubectl rollout restart` writes: another template makes new pods. */
export function restartPatch(now: string): object {
  return { spec: { template: { metadata: { annotations: { 'kubectl.kubernetes.io/restartedAt': now } } } } }
}

export const scalePatch = (replicas: number): object => ({ spec: { replicas } })

export const cordonPatch = (unschedulable: boolean): object => ({ spec: { unschedulable: unschedulable || null } })

export interface ReplicaSet {
  readonly metadata: Meta
  readonly spec?: { readonly replicas?: number; readonly template?: PodTemplate }
}

export interface PodTemplate {
  readonly metadata?: { readonly labels?: Readonly<Record<string, string>>; readonly [field: string]: unknown }
  readonly spec?: { readonly containers?: readonly { readonly name: string; readonly image?: string }[]; readonly [field: string]: unknown }
}

export interface Revision {
  readonly number: number
  readonly replicaSet: string
  readonly created: string
  readonly images: readonly string[]
  readonly cause: string
  readonly isCurrent: boolean
  readonly template: PodTemplate
}

const revisionAnnotation = 'deployment.kubernetes.io/revision'

/** A Deployment's revisions, the newest first: the ReplicaSets that it controls. */
export function revisionsOf(deployment: { readonly metadata: Meta }, replicaSets: readonly ReplicaSet[]): Revision[] {
  const current = deployment.metadata.annotations?.[revisionAnnotation]
  return replicaSets
    .filter(({ metadata }) => metadata.ownerReferences?.some(({ uid, controller }) => controller && uid === deployment.metadata.uid))
    .map(({ metadata, spec }) => {
      const revision = metadata.annotations?.[revisionAnnotation] ?? '0'
      return {
        number: Number(revision),
        replicaSet: metadata.name ?? '',
        created: metadata.creationTimestamp ?? '',
        images: (spec?.template?.spec?.containers ?? []).map(({ image = '' }) => image),
        cause: metadata.annotations?.['kubernetes.io/change-cause'] ?? '',
        isCurrent: revision === current,
        template: spec?.template ?? {},
      }
    })
    .sort((one, other) => other.number - one.number)
}

/** A JSON patch: the template as it was, without the label that the controller added. The test refuses a Deployment that changed meanwhile. */
export function rollbackPatch({ template }: Revision, resourceVersion: string): object[] {
  const { 'pod-template-hash': _, ...labels } = template.metadata?.labels ?? {}
  return [
    { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion },
    { op: 'replace', path: '/spec/template', value: { ...template, metadata: { ...template.metadata, labels } } },
  ]
}

export interface DrainablePod {
  readonly metadata: Meta
  readonly spec?: { readonly volumes?: readonly { readonly emptyDir?: object }[] }
  readonly status?: { readonly phase?: string }
}

export interface DrainPlan {
  readonly evicted: readonly DrainablePod[]
  /** With the reason. */
  readonly left: readonly { readonly pod: DrainablePod; readonly reason: string }[]
  /** Reasons to ask again before the drain begins. */
  readonly warnings: readonly string[]
}

/** The same choice as `kubectl drain --ignore-daemonsets --force --delete-emptydir-data` makes, after a warning. */
export function drainPlan(pods: readonly DrainablePod[]): DrainPlan {
  const [evicted, left]: [DrainablePod[], { pod: DrainablePod; reason: string }[]] = [[], []]
  for (const pod of pods) {
    const reason = reasonToStay(pod)
    if (reason === undefined) evicted.push(pod)
    else left.push({ pod, reason })
  }
  const unmanaged = evicted.filter(({ metadata }) => !metadata.ownerReferences?.some(({ controller }) => controller))
  const local = evicted.filter(({ spec }) => spec?.volumes?.some(({ emptyDir }) => emptyDir))
  const warnings = [
    ...(unmanaged.length > 0 ? [`${unmanaged.length} pods have no controller and will not be created again: ${namesOf(unmanaged)}`] : []),
    ...(local.length > 0 ? [`${local.length} pods lose the data of an emptyDir volume: ${namesOf(local)}`] : []),
  ]
  return { evicted, left, warnings }
}

function reasonToStay({ metadata, status }: DrainablePod): string | undefined {
  if (metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined) return 'a static pod of the node'
  const isOver = status?.phase === 'Succeeded' || status?.phase === 'Failed'
  if (!isOver && metadata.ownerReferences?.some(({ kind, controller }) => controller && kind === 'DaemonSet')) return 'of a DaemonSet'
  return metadata.deletionTimestamp === undefined ? undefined : 'is ending already'
}

const namesOf = (pods: readonly DrainablePod[]) =>
  `${pods
    .slice(0, 5)
    .map(({ metadata }) => metadata.name)
    .join(', ')}${pods.length > 5 ? ', …' : ''}`
