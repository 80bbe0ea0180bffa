/**
 * A component's ways into an API server over the wire (L5), from the kubeconfig that its flags name, or inside a pod from the service account.
 * Upstream: clientcmd BuildConfigFromFlags, controller-manager/pkg/clientbuilder (v1.36).
 */
import type { Clock } from '#base/clock'
import type { Metrics } from '#base/metrics'
import type { Client } from '#client/client'
import { createClient } from '#client/clientOverTransport'
import { createHttpTransport, type HttpTransport, type HttpTransportOptions } from '#client/httpTransport'
import { type Kubeconfig, resolveKubeconfig } from '#client/kubeconfig'
import { inClusterKubeconfig, readKubeconfig } from '#client/kubeconfigFiles'
import { type RateLimit, rateLimitedTransport } from '#client/rateLimitedTransport'
import { meteredTransport } from '#client/restMetrics'
import type { Transport } from '#client/transport'
import { UsageError } from '../apiserver/options/flags.ts'
import { plugins } from '../credentialPlugins.ts'
import { machine } from '../package/connect.ts'

export interface ClientOptions {
  /** Absent: as often as it likes. */
  readonly rateLimit?: RateLimit | undefined
  readonly requestTimeoutMs?: number | undefined
  /** Instead of the kubeconfig's own credentials. */
  readonly token?: (() => Promise<string>) | undefined
}

export interface ApiAccess {
  /** What a connection is made with. */
  readonly transport: HttpTransportOptions
  /** A client with a connection of its own. */
  client(userAgent: string, options?: ClientOptions): Client
  /** Closes all connections. */
  close(): Promise<void>
}

const noKubeconfig = 'invalid configuration: no configuration has been provided: name a kubeconfig with --kubeconfig'

/**
 * @param file '': the pod's own service account
 * @param master the server, whatever the kubeconfig says; '': what it says
 * @throws UsageError when there is no kubeconfig, or it leads nowhere
 */
export async function openAccess(file: string, master: string, { clock, metrics }: { clock: Clock; metrics: Metrics }): Promise<ApiAccess> {
  const config = withServer(await configOf(file, master), master)
  const { transport } = await resolveKubeconfig(config, { clock, readFile: machine.readFile, plugins }).catch(asUsage)
  const open: HttpTransport[] = []
  return {
    transport,
    client(userAgent, { rateLimit, requestTimeoutMs, token } = {}) {
      const http = createHttpTransport({ ...(token ? withToken(transport, token) : transport), userAgent, requestTimeoutMs })
      open.push(http)
      const metered: Transport = meteredTransport(http, metrics, clock, new URL(transport.server).host)
      // A negative rate is no limit, as with client-go.
      return createClient(rateLimit && rateLimit.qps > 0 ? rateLimitedTransport(metered, clock, rateLimit) : metered)
    },
    async close() {
      await Promise.all(open.map((http) => http.close()))
    },
  }
}

async function configOf(file: string, master: string): Promise<Kubeconfig> {
  const found = file === '' ? await inClusterKubeconfig(machine) : await readKubeconfig(machine, file).catch(asUsage)
  if (found) return found
  if (master === '') throw new UsageError([noKubeconfig])
  const name = 'master'
  return { 'current-context': name, contexts: [{ name, context: { cluster: name, user: '' } }], clusters: [{ name, cluster: { server: master } }] }
}

function withServer(config: Kubeconfig, server: string): Kubeconfig {
  if (server === '') return config
  return { ...config, clusters: config.clusters?.map(({ name, cluster }) => ({ name, cluster: { ...cluster, server } })) }
}

function asUsage(error: Error): never {
  throw new UsageError([error.message])
}

function withToken(transport: HttpTransportOptions, bearerToken: () => Promise<string>): HttpTransportOptions {
  const { server, clock, tls } = transport
  return { server, clock, bearerToken, tls: { ...tls, cert: undefined, key: undefined } }
}
