/** Nodes, pods and their usage, as the resource metrics API reads them from the API server's cache; clusters whose server is restarted. */
import assert from 'node:assert/strict'
import { nodes, pods } from '#client/builtIn'
import type { Client } from '#client/client'
import { resourceMetricsGroup } from '#metrics/group'
import type { Point } from '#metrics/samples'
import { UsageStore } from '#metrics/usageStore'
import { createMemoryStore } from '#store/drivers/memory'
import { startTestApiServer, type TestApiServer, type TestApiServerOptions } from '#testing/apiServer'
import { lastingStore } from '#testing/changedStore'
import { realClock } from '#testing/realClock'
import { eventually } from '../controllers/cluster.ts'

export const groupPath = '/apis/metrics.k8s.io/v1beta1'
export const apiServiceName = 'v1beta1.metrics.k8s.io'

/** A test server with metrics.k8s.io over this store. */
export function withMetrics(store: UsageStore): TestApiServerOptions {
  return { prepare: (server) => server.addGroup(resourceMetricsGroup({ objects: server.reader, store, clock: realClock })) }
}

/** A running pod on a node, with one container per name. */
export async function runningPod(
  client: Client,
  at: { namespace: string; name: string; nodeName: string; labels?: Record<string, string> },
  containers: string[],
) {
  const { namespace, name, nodeName, labels = {} } = at
  const spec = { nodeName, containers: containers.map((container) => ({ name: container, image: 'example.com/app' })) }
  const pod = await client.of(pods).create({ metadata: { namespace, name, labels }, spec })
  await client.of(pods).updateStatus({ ...pod, status: { phase: 'Running' } })
}

export async function node(client: Client, name: string, labels: Record<string, string> = {}) {
  await client.of(nodes).create({ metadata: { name, labels }, spec: {} })
}

/** 2026-01-01T00:00:15Z */
export const sampledMs = Date.UTC(2026, 0, 1, 0, 0, 15)

/** Two samples of a node, 15 seconds apart: each container uses 250 millicores and 20 MiB, the node twice that. */
export function sampled(store: UsageStore, nodeName: string, podsOfNode: Readonly<Record<string, readonly string[]>>): void {
  for (const seconds of [0, 15]) {
    const point = (share: number): Point => ({
      startedAtMs: 0,
      atMs: sampledMs - 15_000 + seconds * 1000,
      cpuNs: 1e9 + seconds * 0.25e9 * share,
      memoryBytes: 20 * 2 ** 20 * share,
    })
    const ofPods = Object.entries(podsOfNode).map(([key, containers]) => [key, new Map(containers.map((name) => [name, point(1)]))] as const)
    store.put(nodeName, { node: point(2), pods: new Map(ofPods) })
  }
}

/** A store that outlives its API servers, and one server after the other. */
export async function cluster(t: { after(fn: () => Promise<void>): void }, options: TestApiServerOptions & { readonly withGroup?: boolean } = {}) {
  const store = createMemoryStore({ clock: realClock })
  const lasting = lastingStore(store)
  const start = (withGroup: boolean) => startTestApiServer({ ...options, store: lasting, ...(withGroup ? withMetrics(new UsageStore()) : {}) })
  let api = await start(options.withGroup ?? true)
  t.after(async () => {
    await api.close()
    await store.close()
  })
  return {
    api: () => api,
    async restart(withGroup = true) {
      await api.close()
      api = await start(withGroup)
      return api
    },
  }
}

export const statusOf = async (api: TestApiServer, path = `${groupPath}/nodes`) => {
  try {
    return (await api.client.transport.request({ method: 'GET', path })).status
  } catch (error) {
    return (error as { code: number }).code
  }
}
export const serves = (api: TestApiServer, code: number) => eventually(async () => assert.equal(await statusOf(api), code), 10_000)
