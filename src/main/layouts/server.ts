/**
 * A server of a local cluster, all in one process (L5): store, API server, controllers, scheduler and simulated nodes, which talk to the API
 * without sockets; and the agents of real nodes as child processes. Several servers share an etcd: all serve the API, and elect leaders for the rest.
 */

import os, { networkInterfaces } from 'node:os'
import path from 'node:path'
import { hostPort } from '#api/machinery/ip'
import type { ApiServer } from '#apiserver/apiServer'
import type { ServingTls } from '#apiserver/server/servingTls'
import { aborted } from '#base/orAborted'
import { refreshKubeconfig } from '#cli/kubeconfigFile'
import { createClient } from '#client/clientOverTransport'
import { makePrivateDirectory } from '#host/files'
import { createExplainer, type Explainer } from '#scheduler/explain/explainer'
import { TraceBook } from '#trace/traceBook'
import { createConfigFile } from '../apiserver/configFile.ts'
import { certificateFiles, encryptionFromOptions, followCertificates, signerFromOptions, tlsFromOptions } from '../apiserver/fromOptions.ts'
import { isLocal, openStore } from '../apiserver/openStore.ts'
import { type ServerOptions, serverOptions } from '../apiserver/options/index.ts'
import { createComponentWatch } from '../component/componentHealth.ts'
import { createPodResources, type PodResources } from '../component/podResourcesPage.ts'
import { schedulingPage } from '../component/schedulingPage.ts'
import { etcdServerArgs } from '../etcd/members.ts'
import { clusterConfigurationOf } from '../join/publishedConfiguration.ts'
import { addressPlanOf } from '../localCluster/addressPlan.ts'
import { type ClusterPaths, type ClusterState, clusterPaths, joinEndpointOf, logsOf, readState } from '../localCluster/clusterState.ts'
import { advertisedAddressOf, isReplicated, ownLogOf, serversOf } from '../localCluster/controlPlanes.ts'
import { historyArgs } from '../localCluster/historyLimits.ts'
import { kubeconfigEntry } from '../localCluster/kubeconfigEntry.ts'
import { limitsOf } from '../localCluster/logLimits.ts'
import { rememberProcess, runningProcess } from '../localCluster/processes.ts'
import { loadSharedPki } from '../localCluster/sharedPki.ts'
import { type EtcdPki, withLiveCertificates } from '../pki/etcdPki.ts'
import { createLivePki, live } from '../pki/livePki.ts'
import type { Pki } from '../pki/pki.ts'
import { controlNetwork, gatewayOf } from '../vnode/clusterNetwork.ts'
import { familiesOf } from '../vnode/ranges.ts'
import { ensureAddonAccess, ensureKubeletAccess, ensureMetricsReader } from './addonAccess.ts'
import { type ApiServerParts, assembleApiServer } from './assembleApiServer.ts'
import { type ClusterDialer, createClusterDialer } from './clusterDialer.ts'
import { ensureClusterInfo } from './clusterInfo.ts'
import { createClusterReach } from './clusterReach.ts'
import { ensureJoinAccess } from './joinAccess.ts'
import { createDefaultStorageClassOnce, ensureLocalPathAccess } from './localPathStorage.ts'
import { type LogRotationOptions, logRotation } from './logRotation.ts'
import { offerNodeGroups } from './nodeGroups.ts'
import { createOwnKubelets, type OwnKubelets } from './ownKubelets.ts'
import { layoutOf } from './processes/index.ts'
import { createProcessList } from './processList.ts'
import { ownProgram, type ProcessTools, processTools, runTogether, withTracing } from './processTools.ts'
import type { ComponentWatches } from './serverComponents.ts'
import { storeSocket } from './storeSocket.ts'

/** @param name one of the cluster's servers */
export async function runServer(clusterDir: string, name: string, verbosity: number, signal: AbortSignal): Promise<void> {
  const plainTools = withTrace(processTools('server', { verbosity }))
  const paths = clusterPaths(path.resolve(clusterDir, '../..'), path.basename(clusterDir))
  const state = await readState(paths)
  if (!state) throw new Error(`${paths.state} is not there: a cluster is made with "skiff up"`)
  const own = serversOf(state).find((server) => server.name === name)
  if (!own) throw new Error(`cluster "${state.name}" has no server "${name}"`)
  const files = paths.server(name)
  await takePidFile(files.pid, plainTools)
  let etcdPki: EtcdPki | undefined
  const load = async () => {
    const loaded = await loadSharedPki(paths, state, plainTools.clock)
    etcdPki = loaded.etcdPki
    return loaded.pki
  }
  const certificates = createLivePki(await load(), load, plainTools)
  const { pki } = certificates
  await makePrivateDirectory(paths.dir)
  await makePrivateDirectory(paths.store)
  const options = await optionsOf(paths, state, name, plainTools)
  plainTools.metrics.restrict(options.metrics)
  const { tools, ...tracing } = await withTracing(plainTools, options.tracing)
  const store = await openStore(
    withLiveCertificates(options.storage.etcd, () => etcdPki),
    paths.store,
    tools,
    signal,
  )
  const encryption = await encryptionFromOptions(options, { ...tools, log: tools.log.with('encryption') })
  const externalSigner = await signerFromOptions(options, tools)
  const explainer = createExplainer()
  const podResources = createPodResources()
  const watches = { scheduler: createComponentWatch('scheduler', tools.clock), controllerManager: createComponentWatch('controller-manager', tools.clock) }
  const layout = layoutOf(state, os.availableParallelism())
  const hasOthers = isReplicated(state) || layout.name === 'split'
  const ownKubelets = createOwnKubelets(hasOthers ? { file: paths.kubelets, clock: tools.clock } : undefined)
  const processes = createProcessList(files.processes)
  const dialer = state.network && createClusterDialer({ namespace: controlNetwork(state.network, state.id).namespace, self: ownProgram(), tools, processes })
  const parts = { tools, log: tools.log.with('apiserver'), pki, store, encryption, externalSigner }
  const server = serverOf(options, parts, { state, name, explainer, podResources, ownKubelets, dialer, watches, paths })
  const resourceMetrics = offerNodeGroups(server, tools, ownKubelets)
  // The API server stops after the components: their last requests need a cache that follows the store.
  const serving = new AbortController()
  const running = Promise.all([
    server.run(serving.signal),
    encryption?.run(serving.signal),
    runTogether(dialer ? [dialer.component] : [], tools, serving.signal),
  ])
  const servingTls = () => servingTlsOf(pki, options)
  const onBridge = state.network && advertisedAddressOf(state, name)
  // The balancer listens there for several servers.
  const onHost = isReplicated(state) ? undefined : state.reach?.advertiseAddress
  const places = [{ host: '127.0.0.1', port: own.port }, ...[onBridge, onHost].flatMap((host) => (host ? [{ host, port: state.port }] : []))]
  const listeners = await Promise.all(places.map((place) => server.listen({ ...options.secureServing.listen, ...place, tls: servingTls() })))
  certificates.onLook(() => {
    for (const listener of listeners) listener.setTls(servingTls())
  })
  certificates.onLook(() => refreshKubeconfigs(paths, pki, tools))
  process.on('SIGHUP', certificates.look)
  followCertificates(certificateFiles(options), certificates.look, tools.log, signal)
  await Promise.race([server.started, running, aborted(signal)])
  const logs = logRotation(rotatedLogs(paths, state, name), tools, rotationOf(state))
  // The API is served before the code of the components is read.
  const { controlPlane, nodes } = await import('./serverComponents.ts')
  const shared = { tools, state, paths, name, verbosity, processes, layout }
  const components = [
    ...(await controlPlane(server, { ...shared, pki, explainer, podResources, watches })),
    nodes(server, { ...shared, certificates, ownKubelets, featureGates: options.features.featureGates }),
    ...ownKubelets.components,
    resourceMetrics,
    certificates.component,
    logs,
    ...(isLocal(store) ? [storeSocket(store, paths, tools)] : []),
  ]
  await runTogether(components, tools, signal)
  await server.announceShutdown()
  serving.abort(signal.reason)
  await Promise.all(listeners.map((listener) => listener.close()))
  await running
  await store.close()
  await tracing.close()
}

function withTrace(tools: ProcessTools): ProcessTools {
  return { ...tools, trace: new TraceBook(tools.clock) }
}

/** Two processes must not move one log aside: each server takes its own, the first one those of the others, too. */
function rotatedLogs(paths: ClusterPaths, state: ClusterState, name: string): string[] {
  const servers = serversOf(state)
  const others = new Set(servers.filter((one) => one.name !== name).map((one) => one.name))
  const all = servers[0]?.name === name ? logsOf(paths, state).filter(({ source }) => !others.has(source)) : [{ file: paths.server(name).log }]
  return all.map(({ file }) => file)
}

function rotationOf(state: ClusterState): LogRotationOptions {
  const { maxMebibytes, maxFiles } = limitsOf(state, {})
  return { maxBytes: maxMebibytes * 2 ** 20, maxBackups: maxFiles }
}

/** A supervisor that was killed while it started this process may not have written it down. @throws Error when another server runs */
async function takePidFile(pidFile: string, { clock }: ProcessTools): Promise<void> {
  const other = await runningProcess(pidFile)
  if (other && other.pid !== process.pid) throw new Error(`process ${other.pid} is the server of this cluster already`)
  await rememberProcess(pidFile, process.pid, clock)
}

/**
 * The API server's flags of a local cluster, before its user's own: nodes join with bootstrap tokens and may change only their own objects.
 */
const ownArgs = ['--enable-bootstrap-token-auth=true', '--enable-admission-plugins=NodeRestriction']

function argsOf(paths: ClusterPaths, state: ClusterState): string[] {
  return [...ownArgs, ...(state.etcd ? etcdServerArgs(paths, state.etcd) : []), ...historyArgs(state), ...(state.apiServerArgs ?? [])]
}

async function optionsOf(paths: ClusterPaths, state: ClusterState, name: string, { clock }: ProcessTools): Promise<ServerOptions> {
  const options = await serverOptions(argsOf(paths, state), { file: (file) => createConfigFile(file, clock) })
  const { values } = options.audit
  return { ...options, audit: { ...options.audit, values: { ...values, 'audit-log-path': ownLogOf(state, name, values['audit-log-path']) } } }
}

function servingTlsOf(pki: Pki, options: ServerOptions): ServingTls {
  return tlsFromOptions(options, pki.apiserver, { clientCa: pki.ca.cert, requestHeaderCa: pki.frontProxyCa.cert })
}

/** The state is read again: `up` may have added a file since. */
async function refreshKubeconfigs(paths: ClusterPaths, pki: Pki, { clock, log }: ProcessTools): Promise<void> {
  const state = await readState(paths)
  for (const { file } of state?.kubeconfigs ?? []) {
    await refreshKubeconfig(file, kubeconfigEntry(state as ClusterState, pki), clock).catch((error) =>
      log.error(error, 'A kubeconfig could not be brought up to date', { file }),
    )
  }
}

interface LocalParts {
  readonly paths: ClusterPaths
  readonly state: ClusterState
  readonly name: string
  readonly explainer: Explainer
  readonly podResources: PodResources
  readonly ownKubelets: OwnKubelets
  readonly dialer: ClusterDialer | undefined
  readonly watches: ComponentWatches
}

function serverOf(options: ServerOptions, parts: ApiServerParts, local: LocalParts): ApiServer {
  const { state, name, explainer, podResources, ownKubelets, dialer, watches } = local
  const address = state.network
    ? gatewayOf(state.network)
    : (state.reach?.advertiseAddress ?? externalAddress(familiesOf(addressPlanOf(state).clusterCidr) === 'ipv6'))
  const advertised = advertisedAddressOf(state, name) ?? address
  const { pki } = parts
  const plan = addressPlanOf(state)
  const configuration = clusterConfigurationOf(state, local.paths)
  const own = new Set(state.nodes.map(({ name }) => name))
  return assembleApiServer(options, parts, {
    serviceCidr: plan.serviceCidr,
    hostName: isReplicated(state) ? `${os.hostname()}-${name}` : undefined,
    reach: (reader) => createClusterReach({ ranges: plan, reader, dial: dialer?.dial, isOwn: (name) => own.has(name) }),
    externalAddress: address && hostPort(address, state.port),
    postStartHooks: [
      (transport, signal) => ensureAddonAccess(createClient(transport), signal),
      (transport, signal) => ensureMetricsReader(createClient(transport), signal),
      (transport, signal) => ensureKubeletAccess(createClient(transport), signal),
      (transport, signal) => ensureLocalPathAccess(createClient(transport), signal),
      (transport, signal) => createDefaultStorageClassOnce(createClient(transport), signal),
      (transport, signal) => ensureJoinAccess(createClient(transport), plan, configuration, signal),
      (transport, signal) => ensureClusterInfo(createClient(transport), `https://${joinEndpointOf(state)}`, pki.ca.cert, signal),
    ],
    pages: [schedulingPage(explainer), podResources.page],
    components: Object.values(watches),
    config: {
      advertised: () => (advertised ? { address: advertised, port: state.port } : undefined),
      proxyClient: pki.frontProxyClient,
      kubelet: live(() => ({
        ...pki.apiserverKubeletClient,
        ca: pki.ca.cert,
        addressTypes: options.reach.kubeletAddressTypes,
        ownKubelet: ownKubelets.listenAddress,
      })),
    },
  })
}

/**
 * Where the `kubernetes` Service of a cluster without real nodes points: this host's own address, since the API refuses loopback ones there.
 * Nothing listens on it; simulated pods do not connect.
 */
function externalAddress(ofIpv6: boolean): string | undefined {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  return addresses.find((one) => one.family === (ofIpv6 ? 'IPv6' : 'IPv4') && !one.internal && !one.scopeid)?.address
}
