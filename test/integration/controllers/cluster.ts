/**
 * A control plane for controller tests: the real API server with RBAC's bootstrap policy, the chosen controllers, each with the rights of its
 * own service account, and a stand-in for nodes that makes pods run and end.
 */
import { generateKeyPairSync } from 'node:crypto'
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { createSecurity } from '#apiserver/security'
import type { Logger } from '#base/log'
import { noLog } from '#base/log'
import { type Metrics, noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { formatTime } from '#base/time'
import { pods } from '#client/builtIn'
import { createSharedInformer } from '#client/cache/sharedInformer'
import type { Client } from '#client/client'
import type { ControllerManager, ControllerManagerOptions } from '#controllers/framework/manager'
import { createControllerManager } from '#controllers/framework/manager'
import { type ControllerOptions, controllers } from '#controllers/index'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'

export interface TestCluster {
  readonly api: TestApiServer
  readonly client: Client
  readonly manager: ControllerManager
  /** What controllers complained about. */
  readonly complaints: string[]
  close(): Promise<void>
}

export interface TestClusterOptions extends ControllerManagerOptions, ControllerOptions {
  /** Pods become Running and Ready, and go when deleted. Default true. */
  readonly podsRun?: boolean | undefined
  /** Default: none are kept. */
  readonly metrics?: Metrics | undefined
  /** The admission plugins that are on by default take part. Default false. */
  readonly admission?: boolean | undefined
}

export async function startTestCluster(options: TestClusterOptions = {}): Promise<TestCluster> {
  const random = seededRandom(7)
  const api = await startTestApiServer({
    deps: ({ reader }) => {
      const { admission, ...security } = createSecurity({ reader, clock: realClock, random, serviceAccountKey: testServiceAccountKey() })
      const { authorizers, connect, postStartHooks, computedResources } = security
      return { authorizers, connect, postStartHooks, computedResources, ...(options.admission ? { admission } : {}) }
    },
  })
  const { client } = api
  const complaints: string[] = []
  const manager = createControllerManager(
    {
      client: api.clientAs({ name: 'system:kube-controller-manager', groups: ['system:authenticated'] }),
      clientFor: controllerClients(api),
      clock: realClock,
      random,
      log: listeningLog(complaints),
      metrics: options.metrics ?? noMetrics,
    },
    controllers,
    options,
  )
  const stop = new AbortController()
  const running = [manager.run(stop.signal)]
  if (options.podsRun !== false) running.push(runPods(client, stop.signal))
  return {
    api,
    client,
    manager,
    complaints,
    async close() {
      stop.abort(new Error('the test is over'))
      await Promise.all(running)
      await api.close()
    },
  }
}

/** PEM of a new key for service account tokens. */
export function testServiceAccountKey(): string {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

/** Clients of kube-system's service accounts, with the groups of their tokens. */
export function controllerClients(api: TestApiServer): (serviceAccount: string) => Client {
  const groups = ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated']
  return (serviceAccount) => api.clientAs({ name: `system:serviceaccount:kube-system:${serviceAccount}`, groups })
}

function listeningLog(complaints: string[]): Logger {
  const note = (message: string, fields: unknown) => complaints.push(`${message} ${JSON.stringify(fields)}`)
  return {
    ...noLog,
    warn: note,
    error: (error, message, fields) => void note(`${message}: ${error instanceof Error ? error.stack : String(error)}`, fields),
    with: () => listeningLog(complaints),
  }
}

async function runPods(client: Client, signal: AbortSignal): Promise<void> {
  const informer = createSharedInformer(client.of(pods), { clock: realClock, random: seededRandom(3), log: noLog })
  const act = (pod: Frozen<Pod>) => {
    const { namespace, name = '' } = pod.metadata
    const change = pod.metadata.deletionTimestamp
      ? client.of(pods).delete({ namespace, name }, { gracePeriodSeconds: 0 })
      : pod.status?.phase === 'Running'
        ? Promise.resolve()
        : markRunning(client, pod)
    change.catch((error: unknown) => {
      if (!signal.aborted && !isStatus(error, 'NotFound') && !isStatus(error, 'Conflict')) throw error
    })
  }
  informer.addHandler({ onAdd: act, onUpdate: (_, pod) => act(pod) })
  await informer.run(signal)
}

let lastOctet = 0

export async function markRunning(client: Client, pod: Frozen<Pod>): Promise<void> {
  const { namespace, name = '' } = pod.metadata
  const time = formatTime(realClock.now())
  const podIP = `10.244.0.${(++lastOctet % 250) + 1}`
  const conditions = ['Ready', 'ContainersReady', 'Initialized', 'PodScheduled'].map((type) => ({ type, status: 'True', lastTransitionTime: time }))
  const status = { phase: 'Running', conditions, podIP, podIPs: [{ ip: podIP }], startTime: time }
  await client.of(pods).patch({ namespace, name }, 'merge', { status }, { subresource: 'status' })
}

/** Waits until `check` no longer throws and gives something other than false; gives up after a minute with its last complaint. */
export async function eventually<T>(check: () => Promise<T | false>, deadlineMs = 60_000): Promise<T> {
  const untilMs = realClock.monotonicMs() + deadlineMs
  for (;;) {
    let complaint: unknown = new Error(`not within ${deadlineMs} ms: ${check.toString()}`)
    try {
      const value = await check()
      if (value !== false) return value
    } catch (error) {
      complaint = error
    }
    if (realClock.monotonicMs() > untilMs) throw complaint
    await realClock.sleep(5)
  }
}
