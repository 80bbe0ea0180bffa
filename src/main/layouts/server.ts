/**
 * The server of a local cluster, all in one process (L5): store, API server, controllers, scheduler and simulated nodes, which talk to the API
 * without sockets; and the agents of real nodes as child processes.
 */
import { networkInterfaces } from 'node:os'
import path from 'node:path'
import type { ApiServer } from '#apiserver/apiServer'
import type { ServingTls } from '#apiserver/server/servingTls'
import { refreshKubeconfig } from '#cli/kubeconfigFile'
import { createClient } from '#client/clientOverTransport'
import { makePrivateDirectory } from '#host/files'
import { createExplainer, type Explainer } from '#scheduler/explain/explainer'
import { openLmdbStore } from '#store/drivers/lmdb'
import { createConfigFile } from '../apiserver/configFile.ts'
import { certificateFiles, encryptionFromOptions, followCertificates, signerFromOptions, tlsFromOptions } from '../apiserver/fromOptions.ts'
import { type ServerOptions, serverOptions } from '../apiserver/options/index.ts'
import { schedulingPage } from '../component/schedulingPage.ts'
import { addressPlanOf } from '../localCluster/addressPlan.ts'
import { type ClusterPaths, type ClusterState, clusterPaths, logsOf, readState, servingHosts } from '../localCluster/clusterState.ts'
import { kubeconfigEntry } from '../localCluster/kubeconfigEntry.ts'
import { createLivePki, live } from '../pki/livePki.ts'
import { ensurePki, type Pki } from '../pki/pki.ts'
import { controlNetwork, gatewayOf } from '../vnode/clusterNetwork.ts'
import { ensureAddonAccess, ensureKubeletAccess } from './addonAccess.ts'
import { type ApiServerParts, assembleApiServer } from './assembleApiServer.ts'
import { type ClusterDialer, createClusterDialer } from './clusterDialer.ts'
import { ensureClusterInfo } from './clusterInfo.ts'
import { createClusterReach } from './clusterReach.ts'
import { logRotation } from './logRotation.ts'
import { createOwnKubelets, type OwnKubelets } from './ownKubelets.ts'
import { createProcessList } from './processList.ts'
import { ownProgram, type ProcessTools, processTools, runTogether } from './processTools.ts'

export async function runServer(clusterDir: string, verbosity: number, signal: AbortSignal): Promise<void> {
  const tools = processTools('server', { verbosity })
  const paths = clusterPaths(path.resolve(clusterDir, '../..'), path.basename(clusterDir))
  const state = await readState(paths)
  if (!state) throw new Error(`${paths.state} is not there: a cluster is made with "skiff up"`)
  const hosts = servingHosts(state)
  const load = () => ensurePki(paths.pki, hosts, tools.clock.now())
  const certificates = createLivePki(await load(), load, tools)
  const { pki } = certificates
  await makePrivateDirectory(paths.dir)
  await makePrivateDirectory(paths.store)
  const store = await openLmdbStore({ path: path.join(paths.store, 'data.mdb'), clock: tools.clock, log: tools.log.with('store') })
  const options = await serverOptions([...ownArgs, ...(state.apiServerArgs ?? [])], { file: (name) => createConfigFile(name, tools.clock) })
  const encryption = await encryptionFromOptions(options, { ...tools, log: tools.log.with('encryption') })
  const externalSigner = await signerFromOptions(options, tools)
  const explainer = createExplainer()
  const ownKubelets = createOwnKubelets()
  const processes = createProcessList(paths.processes)
  const dialer = state.network && createClusterDialer({ namespace: controlNetwork(state.network, state.id).namespace, self: ownProgram(), tools, processes })
  const parts = { tools, log: tools.log.with('apiserver'), pki, store, encryption, externalSigner }
  const server = serverOf(options, parts, { state, explainer, ownKubelets, dialer })
  // The API server stops after the components: their last requests need a cache that follows the store.
  const serving = new AbortController()
  const running = Promise.all([
    server.run(serving.signal),
    encryption?.run(serving.signal),
    runTogether(dialer ? [dialer.component] : [], tools, serving.signal),
  ])
  const servingTls = () => servingTlsOf(pki, options)
  const addresses = ['127.0.0.1', ...(state.network ? [gatewayOf(state.network)] : [])]
  const listeners = await Promise.all(addresses.map((host) => server.listen({ ...options.secureServing.listen, host, port: state.port, tls: servingTls() })))
  certificates.onLook(() => {
    for (const listener of listeners) listener.setTls(servingTls())
  })
  certificates.onLook(() => refreshKubeconfigs(paths, pki, tools))
  process.on('SIGHUP', certificates.look)
  followCertificates(certificateFiles(options), certificates.look, tools.log, signal)
  await Promise.race([server.started, running, once(signal)])
  const logs = logRotation(
    logsOf(paths, state).map(({ file }) => file),
    tools,
  )
  // The API is served before the code of the components is read.
  const { controlPlane, nodes } = await import('./serverComponents.ts')
  const components = [
    ...(await controlPlane(server, tools, { pki, explainer, state })),
    ...(await nodes(server, { tools, state, paths, certificates, ownKubelets, verbosity, processes })),
    certificates.component,
    logs,
  ]
  await runTogether(components, tools, signal)
  await server.announceShutdown()
  serving.abort(signal.reason)
  await Promise.all(listeners.map((listener) => listener.close()))
  await running
  await store.close()
}

/**
 * The API server's flags of a local cluster, before its user's own: nodes join with bootstrap tokens and may change only their own objects.
 */
const ownArgs = ['--enable-bootstrap-token-auth=true', '--enable-admission-plugins=NodeRestriction']

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

function once(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

interface LocalParts {
  readonly state: ClusterState
  readonly explainer: Explainer
  readonly ownKubelets: OwnKubelets
  readonly dialer: ClusterDialer | undefined
}

function serverOf(options: ServerOptions, parts: ApiServerParts, { state, explainer, ownKubelets, dialer }: LocalParts): ApiServer {
  const address = state.network ? gatewayOf(state.network) : externalAddress()
  const { pki } = parts
  const plan = addressPlanOf(state)
  const own = new Set(state.nodes.map(({ name }) => name))
  return assembleApiServer(options, parts, {
    serviceCidr: plan.serviceCidr,
    reach: (reader) => createClusterReach({ ranges: plan, reader, dial: dialer?.dial, isOwn: (name) => own.has(name) }),
    externalAddress: address && `${address}:${state.port}`,
    postStartHooks: [
      (transport, signal) => ensureAddonAccess(createClient(transport), signal),
      (transport, signal) => ensureKubeletAccess(createClient(transport), signal),
      (transport, signal) => ensureClusterInfo(createClient(transport), `https://${address ?? '127.0.0.1'}:${state.port}`, pki.ca.cert, signal),
    ],
    pages: [schedulingPage(explainer)],
    config: {
      advertised: () => (address ? { address, port: state.port } : undefined),
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
function externalAddress(): string | undefined {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  return addresses.find((one) => one.family === 'IPv4' && !one.internal)?.address
}
