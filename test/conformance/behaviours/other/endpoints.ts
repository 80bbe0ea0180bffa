/** Services know the pods behind them, and soon. Upstream: test/e2e/network/{endpointslice,service,service_latency}.go. */
import assert from 'node:assert/strict'
import { endpointSlices, endpoints, pods, services } from '#client/builtIn'
import type { BehaviourGroup } from '../behaviour.ts'
import type { BehaviourContext } from '../context.ts'

const labels = { app: 'behind' }
const ports = [
  { name: 'web', containerPort: 3000 },
  { name: 'more', containerPort: 3001 },
]

const slicesOf = async ({ client, namespace }: BehaviourContext, service: string) =>
  (await client.of(endpointSlices).list({ namespace, labelSelector: `kubernetes.io/service-name=${service}` })).items

const addresses = async (context: BehaviourContext, service: string) =>
  (await slicesOf(context, service)).flatMap((slice) => (slice.endpoints ?? []).flatMap((endpoint) => endpoint.addresses)).sort()

const subsets = async (context: BehaviourContext, service: string) => {
  const { subsets = [] } = await context.get(endpoints, service).catch(() => ({ subsets: [] }))
  return subsets.flatMap((subset) => (subset.addresses ?? []).map(({ ip }) => `${ip}:${(subset.ports ?? []).map(({ port }) => port).join()}`)).sort()
}

const manyServices = 100
/** Upstream's limits, in milliseconds, of the times from a Service to its endpoints: the median, and nearly all. */
const limits = { median: 20_000, most: 50_000 }

export const podEndpoints: BehaviourGroup = {
  sig: 'sig-network',
  title: 'Endpoints & slices (pods)',
  rows: ['CTL-12'],
  behaviours: [
    {
      name: 'Endpoints and slices for matching pods',
      run: async (context) => {
        const one = await context.readyPod({ labels, script: 'sleep 600', container: { ports } })
        await context.create(services, { metadata: { name: 'all' }, spec: { selector: labels, ports: [{ name: 'web', port: 80, targetPort: 'web' }] } })
        await context.eventually(
          'the pod in the slice',
          () => addresses(context, 'all'),
          (seen) => seen.join() === one.status?.podIP,
        )
        const [slice] = await slicesOf(context, 'all')
        assert.deepEqual(
          slice?.ports?.map(({ name, port, protocol }) => [name, port, protocol]),
          [['web', 3000, 'TCP']],
        )
        const [endpoint] = slice?.endpoints ?? []
        assert.deepEqual([endpoint?.conditions?.ready, endpoint?.targetRef?.name, endpoint?.nodeName], [true, one.metadata.name, one.spec.nodeName])
        const two = await context.readyPod({ labels, script: 'sleep 600', container: { ports } })
        const wanted = [one.status?.podIP, two.status?.podIP].sort().join()
        await context.eventually(
          'both pods in the slice',
          () => addresses(context, 'all'),
          (seen) => seen.join() === wanted,
        )
        await context.eventually(
          'both pods in the Endpoints',
          () => subsets(context, 'all'),
          (seen) => seen.map((address) => address.split(':')[0]).join() === wanted,
        )
      },
    },
    {
      name: 'Endpoints for matching pods',
      run: async (context) => {
        await context.create(services, {
          metadata: { name: 'multi' },
          spec: { selector: labels, ports: ports.map(({ name, containerPort }, index) => ({ name, port: 80 + index, targetPort: containerPort })) },
        })
        const see = (wanted: string[]) =>
          context.eventually(
            `endpoints ${wanted}`,
            () => subsets(context, 'multi'),
            (seen) => seen.join() === wanted.sort().join(),
          )
        const started = await Promise.all(['one', 'two'].map((name) => context.readyPod({ name, labels, script: 'sleep 600', container: { ports } })))
        const expected = started.map(({ status }) => `${status?.podIP}:3000,3001`)
        const portsSorted = (seen: readonly string[]) =>
          seen.map((one) => one.replace(/:(.*)$/, (_, list: string) => `:${list.split(',').sort().join()}`)).sort()
        await context.eventually(
          'both pods',
          () => subsets(context, 'multi'),
          (seen) => portsSorted(seen).join() === expected.sort().join(),
        )
        await context.client.of(pods).delete({ namespace: context.namespace, name: 'one' })
        await context.eventually(
          'the other pod',
          () => subsets(context, 'multi'),
          (seen) => portsSorted(seen).join() === `${started[1]?.status?.podIP}:3000,3001`,
        )
        await context.client.of(pods).delete({ namespace: context.namespace, name: 'two' })
        await see([])
      },
    },
    {
      name: 'endpoint latency thresholds over 100 services',
      run: async (context) => {
        await context.readyPod({ labels, script: 'sleep 600' })
        const names = Array.from({ length: manyServices }, (_, index) => `latency-${index}`)
        const createdMs = new Map<string, number>()
        const seenMs = new Map<string, number>()
        const create = async () => {
          for (const name of names) {
            createdMs.set(name, performance.now())
            await context.create(services, { metadata: { name }, spec: { selector: labels, ports: [{ port: 80 }] } })
          }
        }
        const stop = new AbortController()
        const watch = async () => {
          const signal = AbortSignal.any([context.signal, stop.signal])
          for await (const batch of context.client.of(endpoints).watch({ namespace: context.namespace, signal })) {
            for (const { object } of batch) {
              const name = object.metadata.name ?? ''
              if ((object.subsets ?? []).length > 0 && createdMs.has(name) && !seenMs.has(name)) seenMs.set(name, performance.now())
            }
            if (seenMs.size === manyServices) return
          }
        }
        await Promise.all([watch(), create()])
        stop.abort()
        const latencies = names.map((name) => (seenMs.get(name) ?? Number.POSITIVE_INFINITY) - (createdMs.get(name) ?? 0)).sort((a, b) => a - b)
        assert.ok((latencies[manyServices / 2] ?? Number.POSITIVE_INFINITY) < limits.median)
        assert.ok((latencies[manyServices - 2] ?? Number.POSITIVE_INFINITY) < limits.most)
      },
    },
  ],
}
