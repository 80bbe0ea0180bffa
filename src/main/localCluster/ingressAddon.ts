/** The ingress of a local cluster, turned on and off (L5). */
import { CommandError } from '#cli/exitCodes'
import type { AddonPlan } from './addonPlan.ts'
import type { ApiProbe } from './apiProbe.ts'
import type { ClusterState } from './clusterState.ts'

export const ingress: AddonPlan = {
  name: 'ingress',
  title: 'Ingress',
  key: 'ingress',
  check: checkIngress,
  isThere: ingressIsThere,
  isGone: (_, probe) => ingressIsGone(probe),
}

/** @throws CommandError unmetPrerequisite without real nodes */
export function checkIngress(realNodes: number): void {
  if (realNodes > 0) return
  throw new CommandError('unmetPrerequisite', 'an ingress needs a node with containerd: simulated pods answer no request', {
    hint: 'skiff doctor says what real nodes need',
  })
}

/** Every real node is an endpoint of the Service, which has an address. */
export async function ingressIsThere({ nodes }: ClusterState, probe: ApiProbe): Promise<true | undefined> {
  const [slices, service] = await Promise.all([
    probe.get('/apis/discovery.k8s.io/v1/namespaces/skiff-ingress/endpointslices'),
    probe.get('/api/v1/namespaces/skiff-ingress/services/skiff-ingress'),
  ])
  if (slices?.status !== 200 || service?.status !== 200) return undefined
  const { items } = JSON.parse(slices.body) as { items: unknown[] }
  const { status } = JSON.parse(service.body) as { status?: { loadBalancer?: { ingress?: unknown[] } } }
  return items.length >= nodes.length && (status?.loadBalancer?.ingress?.length ?? 0) > 0 ? true : undefined
}

async function ingressIsGone(probe: ApiProbe): Promise<true | undefined> {
  const [ingressClass, namespace] = await Promise.all([
    probe.get('/apis/networking.k8s.io/v1/ingressclasses/skiff'),
    probe.get('/api/v1/namespaces/skiff-ingress'),
  ])
  return ingressClass?.status === 404 && namespace?.status === 404 ? true : undefined
}
