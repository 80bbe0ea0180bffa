/** `skiff why ns/NAME`: why a namespace does not end (L4): its conditions, what is left in it with the finalizers that keep it, and which servers are silent. */
import type { Namespace } from '#api/gen/types/core.v1'
import type { KubeList, KubeObject } from '#api/machinery/meta'
import { table } from '../commands/status.ts'
import { type Ask, askFor, servedResources } from './questions.ts'

export interface NamespaceExplanation {
  readonly namespace: string
  readonly phase: string
  /** Finalizers of the namespace itself. */
  readonly finalizers: readonly string[]
  readonly conditions: readonly { readonly type: string; readonly reason: string; readonly message: string }[]
  readonly remaining: readonly RemainingResource[]
  /** API groups whose discovery fails: their objects cannot be deleted. */
  readonly silentGroups: readonly string[]
}

interface RemainingResource {
  /** `configmaps`, `deployments.apps`. */
  readonly resource: string
  readonly count: number
  /** Some of them. */
  readonly objects: readonly { readonly name: string; readonly finalizers: readonly string[]; readonly deletedAt?: string | undefined }[]
}

const objectLimit = 20

export async function explainNamespace(ask: Ask, name: string): Promise<NamespaceExplanation> {
  const namespace = await askFor<Namespace>(ask, `/api/v1/namespaces/${encodeURIComponent(name)}`)
  const conditions = (namespace.status?.conditions ?? []).filter(({ status }) => status === 'True')
  const isEnding = namespace.metadata.deletionTimestamp !== undefined
  const { served, silent } = isEnding ? await servedResources(ask) : { served: [], silent: [] }
  const remaining: RemainingResource[] = []
  for (const { group, path, resource } of served) {
    if (!resource.namespaced || resource.name.includes('/') || !resource.verbs.includes('list') || !resource.verbs.includes('delete')) continue
    const list = await askFor<KubeList<KubeObject>>(ask, `${path}/namespaces/${encodeURIComponent(name)}/${resource.name}?limit=${objectLimit}`).catch(
      () => undefined,
    )
    if (!list || list.items.length === 0) continue
    const objects = list.items.map(({ metadata }) => ({
      name: metadata.name ?? '',
      finalizers: metadata.finalizers ?? [],
      ...(metadata.deletionTimestamp === undefined ? {} : { deletedAt: metadata.deletionTimestamp }),
    }))
    const count = list.items.length + (list.metadata.remainingItemCount ?? 0)
    remaining.push({ resource: group === '' ? resource.name : `${resource.name}.${group}`, count, objects })
  }
  return {
    namespace: name,
    phase: isEnding ? 'Terminating' : (namespace.status?.phase ?? 'Active'),
    finalizers: [...(namespace.spec?.finalizers ?? []), ...(namespace.metadata.finalizers ?? [])],
    conditions: conditions.map(({ type, reason = '', message = '' }) => ({ type, reason, message })),
    remaining,
    silentGroups: silent,
  }
}

export function describeNamespace(found: NamespaceExplanation): string {
  const { namespace, phase, finalizers, conditions, remaining } = found
  const facts = [
    ['namespace:', namespace],
    ['phase:', phase],
    ['finalizers:', finalizers.join(', ') || 'none'],
  ]
  if (phase !== 'Terminating') return `${table(facts)}It is not being deleted.\n`
  const sections = [table(facts)]
  if (conditions.length > 0) sections.push(conditions.map(({ type, message }) => `${type}: ${message}\n`).join(''))
  if (remaining.length > 0) {
    const rows = remaining.flatMap(({ resource, objects, count }) => [
      ...objects.map(({ name, finalizers: kept, deletedAt }) => [resource, name, deletedAt ?? 'not yet', kept.join(', ') || '-']),
      ...(count > objects.length ? [[resource, `... and ${count - objects.length} more`, '', '']] : []),
    ])
    sections.push(table([['LEFT', 'NAME', 'DELETED', 'FINALIZERS'], ...rows]))
  }
  sections.push(`${nextSteps(found).join('\n')}\n`)
  return sections.join('\n')
}

function nextSteps({ namespace, remaining, silentGroups, finalizers }: NamespaceExplanation): string[] {
  const steps = silentGroups.map(
    (group) =>
      `The server of ${group} does not answer: bring it back, or remove it with: kubectl get apiservices | grep ${group}; kubectl delete apiservice NAME`,
  )
  const keepers = [...new Set(remaining.flatMap(({ objects }) => objects.flatMap((object) => object.finalizers)))].sort()
  for (const keeper of keepers)
    steps.push(`Objects wait for the controller that owns the finalizer ${keeper}: check that it runs. Removing the finalizer by hand skips its clean-up.`)
  if (steps.length > 0) return steps
  if (remaining.length > 0) return ['What is left is being deleted; nothing holds it. Pods may take their grace period.']
  const others = finalizers.filter((one) => one !== 'kubernetes')
  if (others.length > 0) return [`The namespace itself waits for: ${others.join(', ')}`]
  return [`Nothing is left: the namespace controller will end it. If it does not, see that it runs: skiff status; skiff logs | grep ${namespace}`]
}
