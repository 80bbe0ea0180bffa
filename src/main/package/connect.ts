/**
 * From a kubeconfig to a client, for programs of their own (L5; part of skiff-kubernetes/client): the machine's files, environment, clock and chance, and
 * programs that give credentials. Inside Skiff clients are made by the layouts.
 */
import { randomInt } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { type Random, seededRandom } from '#base/random'
import type { Client } from '#client/client'
import { createClient } from '#client/clientOverTransport'
import { createHttpTransport } from '#client/httpTransport'
import { resolveKubeconfig } from '#client/kubeconfig'
import { findKubeconfig, type KubeconfigPlace } from '#client/kubeconfigFiles'
import { type RateLimit, rateLimitedTransport } from '#client/rateLimitedTransport'
import { meteredTransport } from '#client/restMetrics'
import type { Transport } from '#client/transport'
import { plugins } from '../credentialPlugins.ts'
import { createPrometheusMetrics, type PrometheusMetrics } from '../prometheus.ts'
import { createRealClock } from '../realClock.ts'
import { createTextLog } from '../textLog.ts'

export interface ConnectOptions {
  /** Default: KUBECONFIG, ~/.kube/config, or the pod's service account. */
  readonly kubeconfig?: string | undefined
  /** Default: the current one. */
  readonly context?: string | undefined
  /** How servers know this program. */
  readonly userAgent?: string | undefined
  /** Default: none; servers say themselves when they have enough. */
  readonly rateLimit?: RateLimit | undefined
  readonly requestTimeoutMs?: number | undefined
  /** Integers of custom resources that no double holds become bigints, which JSON.stringify refuses. Default: the nearest double. */
  readonly exactIntegers?: boolean | undefined
  /** Default: warnings go to the log, each text once. */
  readonly onWarning?: ((text: string) => void) | undefined
  /** Default: klog's form, to standard error. */
  readonly log?: Logger | undefined
}

/** All that components ask for; hand it on as it is. */
export interface Connection extends AsyncDisposable {
  readonly client: Client
  /** The context's. */
  readonly namespace: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: PrometheusMetrics
  close(): Promise<void>
}

/** @throws Error when there is no kubeconfig, or it leads nowhere. Does not call the server. */
export async function connect(options: ConnectOptions = {}): Promise<Connection> {
  const clock = createRealClock()
  const metrics = createPrometheusMetrics()
  const log =
    options.log ?? createTextLog({ write: (line) => process.stderr.write(line), verbosity: 0, nowMs: () => clock.now(), pid: process.pid, stacks: true })
  const config = await findKubeconfig(machine, options.kubeconfig)
  const deps = { clock, readFile: machine.readFile, plugins }
  const { transport: resolved, namespace } = await resolveKubeconfig(config, deps, { context: options.context, userAgent: options.userAgent })
  const warned = new Set<string>()
  const warnOnce = (text: string) => {
    if (!warned.has(text)) log.warn(text)
    warned.add(text)
  }
  const { requestTimeoutMs, exactIntegers, onWarning = warnOnce } = options
  const http = createHttpTransport({ ...resolved, requestTimeoutMs, exactIntegers, onWarning })
  const metered: Transport = meteredTransport(http, metrics, clock, new URL(resolved.server).host)
  const transport = options.rateLimit ? rateLimitedTransport(metered, clock, options.rateLimit) : metered
  const close = () => http.close()
  return { client: createClient(transport), namespace, clock, random: seededRandom(randomInt(2 ** 32)), log, metrics, close, [Symbol.asyncDispose]: close }
}

/** What the search for kubeconfigs may look at on this machine. */
export const machine: KubeconfigPlace = {
  env: process.env,
  home: os.homedir(),
  readFile: (file) => fs.readFile(file),
  listSeparator: path.delimiter,
  resolve: (folder, file) => path.resolve(folder, file),
  dirname: (file) => path.dirname(file),
}

/** Aborts at the first SIGINT or SIGTERM; a second one ends the process, as without it. */
export function stopSignal(): AbortSignal {
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort(new Error(name)))
  return stop.signal
}
