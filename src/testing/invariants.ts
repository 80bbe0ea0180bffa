/**
 * What must hold in a cluster that has come to rest, whatever happened before: nothing without its owner, nothing twice, everything as asked.
 * Violations are returned as sentences.
 */
import type { Pod } from '#api/gen/types/core.v1'
import { isPodTerminal } from '#api/helpers/pods'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { daemonSets, deployments, jobs, nodes, pods, replicaSets, statefulSets } from '#client/builtIn'
import type { Client } from '#client/client'

type Objects = readonly Frozen<KubeObject>[]

/** Empty when all is well. */
export async function violations(client: Client): Promise<string[]> {
  const [allPods, sets, deployed, daemons, stateful, batch, machines] = await Promise.all([
    client.of(pods).list(),
    client.of(replicaSets).list(),
    client.of(deployments).list(),
    client.of(daemonSets).list(),
    client.of(statefulSets).list(),
    client.of(jobs).list(),
    client.of(nodes).list(),
  ])
  const active = allPods.items.filter((pod) => !isPodTerminal(pod) && !pod.metadata.deletionTimestamp)
  const owned = ({ metadata: { uid } }: Frozen<KubeObject>) => active.filter((pod) => pod.metadata.ownerReferences?.some((owner) => owner.uid === uid))
  return [
    ...orphans([...allPods.items, ...sets.items], [...sets.items, ...deployed.items, ...daemons.items, ...stateful.items, ...batch.items]),
    ...sharedAddresses(active),
    ...strandedPods(active, machines.items),
    ...deployed.items.flatMap((one) => {
      const counts = [one.status?.replicas, one.status?.updatedReplicas, one.status?.readyReplicas].map((count) => count ?? 0)
      return counts.every((count) => count === (one.spec.replicas ?? 1))
        ? []
        : [`${describe(one)} wants ${one.spec.replicas} replicas and has ${counts.join(', ')}`]
    }),
    ...[...sets.items, ...stateful.items].flatMap((one) => expected(one, owned(one).length, one.spec?.replicas ?? 1)),
    ...daemons.items.flatMap((one) => {
      const places = owned(one).map(({ spec }) => spec.nodeName)
      return new Set(places).size === places.length
        ? expected(one, places.length, one.status?.desiredNumberScheduled ?? 0)
        : [`${describe(one)} is twice on one node`]
    }),
    ...batch.items.flatMap((one) => {
      const [succeeded, completions] = [one.status?.succeeded ?? 0, one.spec?.completions ?? 1]
      return succeeded > completions ? [`${describe(one)} succeeded ${succeeded} times instead of ${completions}`] : []
    }),
  ]
}

function describe({ kind, metadata: { namespace, name } }: Frozen<KubeObject>): string {
  return `${kind} ${namespace ?? ''}/${name}`
}

function expected(one: Frozen<KubeObject>, has: number, wants: number): string[] {
  return has === wants ? [] : [`${describe(one)} wants ${wants} pods and has ${has}`]
}

function orphans(dependents: Objects, owners: Objects): string[] {
  const there = new Set([...owners, ...dependents].map(({ metadata }) => metadata.uid))
  return dependents.flatMap((object) =>
    (object.metadata.ownerReferences ?? [])
      .filter(({ uid, kind }) => kind !== 'Node' && !there.has(uid))
      .map(({ kind, name }) => `${describe(object)} has lost its owner, ${kind} ${name}`),
  )
}

function sharedAddresses(active: readonly Frozen<Pod>[]): string[] {
  const holders = new Map<string, string>()
  return active.flatMap((pod) => {
    const ip = pod.spec.hostNetwork ? undefined : pod.status?.podIP
    if (!ip) return []
    const other = holders.get(ip)
    holders.set(ip, describe(pod))
    return other ? [`${describe(pod)} and ${other} share the address ${ip}`] : []
  })
}

function strandedPods(active: readonly Frozen<Pod>[], machines: Objects): string[] {
  const names = new Set(machines.map(({ metadata }) => metadata.name))
  return active.flatMap((pod) => {
    if (!pod.spec.nodeName) return [`${describe(pod)} is on no node`]
    if (!names.has(pod.spec.nodeName)) return [`${describe(pod)} is on ${pod.spec.nodeName}, which is gone`]
    return pod.status?.phase === 'Running' ? [] : [`${describe(pod)} is ${pod.status?.phase}`]
  })
}
