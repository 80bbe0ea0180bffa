/**
 * The embedded store as an etcd server (L5): `skiff etcd serve`, one member, in the foreground. Clients of etcd's API v3, such as etcdctl and API servers, use
 * it like etcd. Upstream: etcd server/embed, server/etcdmain.
 */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { messageOf } from '#base/messageOf'
import { aborted } from '#base/orAborted'
import { type GrpcDocument, type GrpcServer, serveGrpc } from '#grpc/grpcServer'
import { makePrivateDirectory } from '#host/files'
import type { Alarms } from '#store/serve/alarms'
import { etcdVersion } from '#store/serve/api'
import { autoCompaction } from '#store/serve/autoCompaction'
import { etcdServices } from '#store/serve/etcdApi'
import type { LocalStore } from '#store/store'
import { followCertificates } from '../apiserver/fromOptions.ts'
import { openLocalStore } from '../apiserver/openStore.ts'
import { parseFlags, UsageError } from '../apiserver/options/flags.ts'
import { logs } from '../apiserver/options/logs.ts'
import type { OptionsOf } from '../apiserver/options/readOptions.ts'
import { runInForeground } from '../component/foreground.ts'
import { etcdServing } from '../component/options/etcdServing.ts'
import { passwordThread } from '../etcd/passwordThread.ts'
import { readServeConfiguration, type ServeConfiguration } from '../etcd/serveConfigFile.ts'
import { storeMetricsText, storeTimings } from '../etcd/serveMetrics.ts'
import { type ProcessTools, processTools, runTogether } from './processTools.ts'

const groups = { etcd: etcdServing, logs } as const

/** Resolves with the exit code after the signal has stopped the server, or immediately for invalid flags. */
export async function runEtcdServer(args: readonly string[], signal: AbortSignal): Promise<number> {
  const about = 'The store of Skiff as an etcd server (API v3, one member), in the foreground.'
  const warnings: string[] = []
  const expand = async (given: readonly string[]) => {
    const read = await configured(given)
    warnings.push(...read.warnings)
    return read.args
  }
  const run = (options: OptionsOf<typeof groups>, stopped: AbortSignal) => serve(options, warnings, stopped)
  return runInForeground({ command: 'etcd serve', about, needs: '', groups, expand, run }, args, signal)
}

/** As etcd, the file counts alone when one is named. @throws UsageError */
async function configured(args: readonly string[]): Promise<ServeConfiguration> {
  const file = parseFlags({ ...etcdServing.flags, ...logs.flags }, args)['config-file']
  if (file === '') return { args, warnings: [] }
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new UsageError([`--config-file: ${messageOf(error)}`])
  })
  return readServeConfiguration(file, text, etcdServing.flags)
}

/** Added to the request limit for gRPC's framing. Upstream: grpcOverheadBytes. */
const overheadBytes = 512 * 1024

async function serve({ etcd: options, logs: logSettings }: OptionsOf<typeof groups>, warnings: readonly string[], signal: AbortSignal): Promise<void> {
  const tools = processTools('etcd', logSettings)
  await makePrivateDirectory(options.dataDir)
  for (const warning of warnings) tools.log.warn(warning)
  const store = await openLocalStore(options.dataDir, tools, { quotaBytes: options.quotaBytes, timings: storeTimings(tools.metrics), signal })
  const servers: GrpcServer[] = []
  try {
    const ids = { memberId: idOf(`member ${options.name}`), clusterId: idOf(`cluster ${options.clientUrls.join(',')}`) }
    const passwords = passwordThread(options.bcryptCost)
    const { services, alarms, auth } = etcdServices({
      ...{ ...options, ...ids, store, passwords, temporaryFolder: options.dataDir },
      ...{ clock: tools.clock, metrics: tools.metrics },
    })
    for (const { host, port, isSecure } of options.listeners) {
      const server = await serveGrpc(host, port, {
        services,
        maxRequestBytes: options.maxRequestBytes + overheadBytes,
        maxConcurrentStreams: options.maxConcurrentStreams,
        keepAlive: options.keepAlive,
        documents: (path) => documentOf(path, { store, alarms, tools, memberId: ids.memberId, quotaBytes: options.quotaBytes }),
        tls: isSecure ? options.tls() : undefined,
      }).catch((error: Error) => {
        throw new UsageError([`--listen-client-urls: ${error.message}`])
      })
      servers.push(server)
      tools.log.info('Serving client traffic', { address: `${server.host}:${server.port}`, isSecure })
      if (!auth.isEnabled && !(isSecure && options.tls()?.clientCa) && !/^(127\.|::1$)/.test(host))
        tools.log.warn('Clients of this address need no certificate, and read and write every key', { host })
    }
    const renew = () => {
      const tls = options.tls()
      if (tls) for (const server of servers) server.setTls(tls)
    }
    followCertificates([options.certificate], renew, tools.log, signal)
    const compactors = options.autoCompaction ? [autoCompaction({ store, clock: tools.clock, log: tools.log }, options.autoCompaction)] : []
    await runTogether(compactors, tools, signal)
    await aborted(signal)
  } finally {
    await Promise.allSettled(servers.map((server) => server.close()))
    await store.close()
  }
}

/** Derived from the text, so that it is equal after a restart with the same flags; below 2^53, so that it is exact in JavaScript. */
function idOf(text: string): number {
  return Number.parseInt(createHash('sha256').update(text).digest('hex').slice(0, 13), 16)
}

interface Served {
  readonly store: LocalStore
  readonly alarms: Alarms
  readonly tools: ProcessTools
  readonly memberId: number
  readonly quotaBytes: number
}

const plain = (status: number, body: string): GrpcDocument => ({ status, contentType: 'text/plain; charset=utf-8', body })
const json = (status: number, body: object): GrpcDocument => ({ status, contentType: 'application/json', body: JSON.stringify(body) })

/** Upstream: etcd server/etcdserver/api/etcdhttp. */
async function documentOf(path: string, served: Served): Promise<GrpcDocument> {
  const { store, alarms, tools } = served
  const [alarm] = alarms.active()
  switch (path.split('?')[0]) {
    case '/health':
      return alarm ? json(503, { health: 'false', reason: `ALARM ${alarm}` }) : json(200, { health: 'true', reason: '' })
    case '/livez':
    case '/readyz':
      return plain(200, 'ok\n')
    case '/version':
      return json(200, { etcdserver: etcdVersion, etcdcluster: etcdVersion.replace(/\d+$/, '0') })
    case '/metrics':
      return { status: 200, contentType: tools.metrics.contentType, body: `${await storeMetricsText(store, served)}${tools.metrics.render()}` }
    default:
      return plain(404, '404 page not found\n')
  }
}
