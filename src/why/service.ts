/** Why a Service has no endpoints, or no address (L2). */
import type { Pod, Service } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import { isPodActive, isPodReady } from '#api/helpers/pods'
import { findTargetPort, loadBalancerAddresses } from '#api/helpers/services'
import { selectorOfMap } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import { type Cause, counted, type Explanation, kubectl } from './answer.ts'
import { eventText, type View } from './view.ts'
import { causesOfPods } from './workloadPods.ts'

export async function explainService(service: Frozen<Service>, view: View): Promise<Explanation> {
  const { type = 'ClusterIP', externalName, selector } = service.spec
  if (type === 'ExternalName') return { state: `DNS answers with ${externalName}`, causes: [] }
  const slices = await view.list<EndpointSlice>('endpointslices', service.metadata.namespace, {
    labelSelector: `kubernetes.io/service-name=${service.metadata.name}`,
  })
  const ready = (slices ?? []).flatMap(({ endpoints }) => endpoints ?? []).filter(({ conditions }) => conditions?.ready !== false).length
  const causes = selector && Object.keys(selector).length > 0 ? await selectedCauses(service, ready, view) : bareCauses(service, slices)
  const ofBalancer = await balancerCauses(service, view)
  const all = [...causes, ...ofBalancer]
  return { state: `it has ${counted(ready, 'ready endpoint')}`, causes: all, isSettled: all.length === 0 && ready > 0 }
}

function bareCauses({ metadata: { namespace, name } }: Frozen<Service>, slices: readonly Frozen<EndpointSlice>[] | undefined): readonly Cause[] {
  if (slices === undefined || slices.some(({ endpoints }) => (endpoints ?? []).length > 0)) return []
  return [
    {
      text: 'it has no selector, and no EndpointSlice has addresses for it',
      evidence: `spec.selector is empty; no EndpointSlice with kubernetes.io/service-name=${name} has endpoints`,
      next: kubectl(namespace, 'get', 'endpointslices', '-l', `kubernetes.io/service-name=${name}`),
    },
  ]
}

async function selectedCauses(service: Frozen<Service>, ready: number, view: View): Promise<readonly Cause[]> {
  const { namespace } = service.metadata
  const selector = selectorOfMap(service.spec.selector)
  const selected = await view.list<Pod>('pods', namespace, { labelSelector: selector.toString() })
  if (!selected) return []
  const pods = selected.filter(isPodActive)
  if (pods.length === 0) return [await noPodsCause(service, view)]
  const wrong = portCauses(service, pods)
  if (ready > 0 || wrong.length > 0) return wrong
  return pods.some(isPodReady) ? [controllerCause(service)] : causesOfPods(pods, view)
}

async function noPodsCause({ spec, metadata: { namespace } }: Frozen<Service>, view: View): Promise<Cause> {
  const wanted = Object.entries(spec.selector ?? {})
  const text = wanted.map(([key, value]) => `${key}=${value}`).join(',')
  const pods = (await view.list<Pod>('pods', namespace))?.filter(isPodActive) ?? []
  const [nearest] = pods
    .map((pod) => ({ pod, likeness: likenessOf(pod, wanted) }))
    .filter(({ likeness }) => likeness > 0)
    .sort((one, other) => other.likeness - one.likeness)
  return {
    text: `its selector selects no pod that runs: ${text}${nearest ? differenceOf(nearest.pod, wanted) : ''}`,
    evidence: `spec.selector ${text}`,
    next: kubectl(namespace, 'get', 'pods', '--show-labels'),
  }
}

type Labels = readonly (readonly [key: string, value: string])[]

const ofEqual = 1000

/** Equal labels count most, then how many first letters of the values are equal. */
function likenessOf({ metadata: { labels } }: Frozen<Pod>, wanted: Labels): number {
  return wanted.reduce((sum, [key, value]) => {
    const found = ownValue(labels, key)
    if (found === value) return sum + ofEqual
    return sum + (found === undefined ? 0 : commonLetters(found, value))
  }, 0)
}

function commonLetters(one: string, other: string): number {
  let count = 0
  while (count < one.length && one[count] === other[count]) count++
  return count
}

function differenceOf({ metadata: { name, labels } }: Frozen<Pod>, wanted: Labels): string {
  const others = wanted.filter(([key, value]) => ownValue(labels, key) !== value)
  return `; the nearest is ${name} with ${others.map(([key]) => `${key}=${ownValue(labels, key) ?? '(absent)'}`).join(', ')}`
}

/** Ports that lead to nothing in the pods. A number works without a containerPort, so it counts only where the containers name their ports. */
function portCauses({ spec: { ports = [] }, metadata: { namespace, name = '' } }: Frozen<Service>, pods: readonly Frozen<Pod>[]): readonly Cause[] {
  const [pod] = pods
  const declared = (pod?.spec.containers ?? []).flatMap((container) => container.ports ?? [])
  const next = kubectl(namespace, 'edit', 'service', name)
  return ports.flatMap((port): Cause[] => {
    const target = port.targetPort ?? port.port
    const found = pod && findTargetPort(pod, port)
    const evidence = `spec.ports targetPort ${target}, pod ${pod?.metadata.name}`
    if (found === undefined) {
      const names = declared.flatMap((one) => one.name ?? []).join(', ')
      return [
        { text: `its targetPort ${target} is the name of no port of its pods${names === '' ? ', which name none' : `; they have: ${names}`}`, evidence, next },
      ]
    }
    if (declared.length === 0 || declared.some(({ containerPort }) => containerPort === found)) return []
    const numbers = declared.map(({ containerPort }) => containerPort).join(', ')
    return [{ text: `its targetPort ${target} may lead nowhere: its pods declare ${numbers}`, evidence, next }]
  })
}

function controllerCause({ metadata: { namespace, name } }: Frozen<Service>): Cause {
  return {
    text: 'its pods are ready, and no EndpointSlice has them: check that the controllers run',
    evidence: `no EndpointSlice with kubernetes.io/service-name=${name} has ready endpoints`,
    next: kubectl(namespace, 'get', 'endpointslices', '-l', `kubernetes.io/service-name=${name}`),
  }
}

async function balancerCauses(service: Frozen<Service>, view: View): Promise<readonly Cause[]> {
  const { type, loadBalancerClass } = service.spec
  if (type !== 'LoadBalancer' || loadBalancerAddresses(service).length > 0) return []
  const { namespace, name = '' } = service.metadata
  const warning = await view.warningOf(service)
  const of = loadBalancerClass === undefined ? '' : ` of class ${loadBalancerClass}`
  return [
    {
      text: warning ? `it gets no address: ${warning.message}` : `no controller of load balancers${of} has given it an address`,
      evidence: warning ? eventText(warning) : 'status.loadBalancer is empty',
      next: kubectl(namespace, 'describe', 'service', name),
    },
  ]
}
