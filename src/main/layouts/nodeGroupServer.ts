/**
 * `skiff nodegroup serve` (L5): answers upstream's cluster-autoscaler about the node groups of a local cluster, in the foreground. It reads the cluster's directory
 * as its user does. Upstream: cloudprovider/externalgrpc of cluster-autoscaler (1.36).
 */
import { aborted } from '#base/orAborted'
import { printable } from '#base/printable'
import { checkName, missing, several } from '#cli/command'
import { CommandError, exitCodes } from '#cli/exitCodes'
import { type GrpcServer, serveGrpc } from '#grpc/grpcServer'
import { followCertificates } from '../apiserver/fromOptions.ts'
import { UsageError } from '../apiserver/options/flags.ts'
import { logs } from '../apiserver/options/logs.ts'
import type { OptionsOf } from '../apiserver/options/readOptions.ts'
import { runInForeground } from '../component/foreground.ts'
import { nodeGroupServing } from '../component/options/nodeGroupServing.ts'
import type { LocalClusterDeps } from '../localCluster/deps.ts'
import { createLocalClusterManager } from '../localCluster/localClusterManager.ts'
import { cloudProviderService } from '../nodegroup/cloudProvider.ts'
import { createClusterGroups } from '../nodegroup/clusterGroups.ts'
import { processTools } from './processTools.ts'

const groups = { serving: nodeGroupServing, logs } as const

/** Resolves with the exit code after the signal has stopped the server, or immediately for flags that cannot be used. */
export async function runNodeGroupServer(deps: LocalClusterDeps, args: readonly string[], signal: AbortSignal): Promise<number> {
  const about = "Answers upstream's cluster-autoscaler (cloud provider externalgrpc) about the node groups of a local cluster, in the foreground."
  const run = (options: OptionsOf<typeof groups>) => serve(deps, options, signal)
  try {
    return await runInForeground({ command: 'nodegroup serve', about, needs: '', groups, run }, args, signal)
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    process.stderr.write(`error: ${printable(error.message)}\n${error.hint === undefined ? '' : `hint: ${printable(error.hint)}\n`}`)
    return exitCodes[error.exit]
  }
}

/** Nodes to delete, with their labels and annotations. */
const maxRequestBytes = 4 * 2 ** 20
const maxConcurrentStreams = 100

async function serve(deps: LocalClusterDeps, { serving, logs: logSettings }: OptionsOf<typeof groups>, signal: AbortSignal): Promise<void> {
  const tools = processTools('nodegroup', logSettings)
  const { host, port, certificate } = serving
  const cluster = await chosenCluster(deps, serving.cluster)
  const service = cloudProviderService({ ...tools, groups: createClusterGroups(deps, cluster) })
  const server = await serveGrpc(host, port, {
    services: [service],
    maxRequestBytes,
    maxConcurrentStreams,
    documents: (path) =>
      path === '/healthz'
        ? { status: 200, contentType: 'text/plain; charset=utf-8', body: 'ok' }
        : { status: 404, contentType: 'text/plain; charset=utf-8', body: '404 page not found\n' },
    tls: certificate.value,
  }).catch((error: Error) => {
    throw new UsageError([`--listen: ${error.message}`])
  })
  try {
    tools.log.info('Serving node groups', { cluster, address: `${server.host}:${server.port}`, isSecure: certificate.value !== undefined })
    if (!certificate.value) tools.log.warn('Clients of this address need no certificate: every user of this host can add and remove nodes', { cluster })
    followCertificates([certificate], () => showNewest(server, certificate.value), tools.log, signal)
    await aborted(signal)
  } finally {
    await server.close()
  }
}

function showNewest(server: GrpcServer, tls: Parameters<GrpcServer['setTls']>[0] | undefined): void {
  if (tls) server.setTls(tls)
}

/** @throws CommandError when there is none, or several and none is named */
async function chosenCluster(deps: LocalClusterDeps, name: string): Promise<string> {
  const clusters = createLocalClusterManager(deps)
  if (name !== '') {
    if (await clusters.exists(checkName(name))) return name
    throw missing(name)
  }
  const names = await clusters.names()
  const [only] = names
  if (only === undefined) throw new CommandError('notFound', 'there is no cluster', { hint: 'create one with: skiff up' })
  if (names.length > 1) throw several(names)
  return only
}
