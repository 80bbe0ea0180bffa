/**
 * The port of a simulated node's kubelet (testing): for kubectl logs, exec, attach and port-forward, which the API server hands on to it. Everything
 * else of a test cluster goes without ports, so nodes have one only when asked.
 */
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Client } from '#client/client'
import type { KubeletView } from '#kubelet/core/kubeletView'
import type { Kubelet } from '#kubelet/kubelet'
import { apiAuth } from '#kubelet/server/auth'
import { createKubeletServer } from '#kubelet/server/kubeletServer'
import type { Activity } from './settle.ts'

/** Certificate and key of the API server, which kubelets trust and serve with themselves. PEM. */
export interface KubeletCredentials {
  readonly cert: string
  readonly key: string
}

export interface KubeletPortDeps {
  readonly client: Client
  readonly clock: Clock
  readonly log: Logger
  readonly activity: Activity
}

/** The address on which the kubelets listen. */
export const kubeletHost = '127.0.0.1'

/** Makes a kubelet that knows its port, and runs both until the signal aborts. */
export async function runWithPort(
  deps: KubeletPortDeps,
  credentials: KubeletCredentials,
  nodeName: string,
  create: (port: number) => Kubelet,
  signal: AbortSignal,
): Promise<void> {
  let kubelet: Kubelet | undefined
  const view = (): KubeletView => {
    if (!kubelet) throw new Error(`the kubelet of ${nodeName} has not started yet`)
    return kubelet.view
  }
  // The port is known before the kubelet is there, which publishes it.
  const early: KubeletView = {
    get config() {
      return view().config
    },
    get runtime() {
      return view().runtime
    },
    pods: () => view().pods(),
    pod: (namespace, name) => view().pod(namespace, name),
    podWorkers: () => view().podWorkers(),
    podTrace: (object) => view().podTrace(object),
    podStatus: (uid) => view().podStatus(uid),
    context: () => view().context(),
    resolver: (pod) => view().resolver(pod),
    volumeStatistics: (podUid, measures) => view().volumeStatistics(podUid, measures),
    probeMetrics: () => view().probeMetrics(),
    latestLoopEntryMs: () => view().latestLoopEntryMs(),
  }
  const auth = apiAuth(deps.client, deps.clock, nodeName)
  const { cert, key } = credentials
  const server = createKubeletServer({ ...deps, view: early, auth }, { address: kubeletHost, port: 0, cert, key, clientCa: cert })
  const serving = server.run(signal)
  deps.activity.begin()
  const port = await server.listening.finally(() => deps.activity.end())
  kubelet = create(port)
  await Promise.all([serving, kubelet.run(signal)])
}
