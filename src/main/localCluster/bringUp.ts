/** `up` and `start` (L5): plan a new cluster or take one that is there, start what does not run, and wait until it really serves. */
import { networkInterfaces } from 'node:os'
import path from 'node:path'
import { messageOf } from '#base/messageOf'
import type { ClusterStatus, UpOptions } from '#cli/clusterManager'
import { CommandError } from '#cli/exitCodes'
import type { Progress } from '#cli/progress'
import { asCommandError } from '#cli/systemErrors'
import { freeBytesOf, sizeOf } from '#host/files'
import type { BackupPlan } from '../backup/backupPlan.ts'
import { etcdMemberPaths } from '../etcd/members.ts'
import { checkEtcd, etcdSize, planEtcd } from '../etcd/planEtcd.ts'
import { checkSystemd, installUnit } from '../systemd/units.ts'
import { withAddon } from './addons.ts'
import { type ApiProbe, createApiProbe } from './apiProbe.ts'
import { unitOf } from './autostart.ts'
import { backupPlanOf, withBackup } from './backupSettings.ts'
import { checkMemory } from './changeNodes.ts'
import { chooseRuntime } from './chooseRuntime.ts'
import { claimNetwork, ensureClusterNetwork, rangesWithoutNetwork } from './clusterNetworks.ts'
import { ensureNode } from './clusterNodes.ts'
import { checkPort, ensureSupervisor, stopProcesses } from './clusterProcesses.ts'
import { type ClusterPaths, type ClusterState, clusterId, logsOf, newestFormat, type ReachPlan, readState, writeState } from './clusterState.ts'
import { statusOf } from './clusterStatus.ts'
import { markOf, refuseTakenId, writeTag } from './clusterTags.ts'
import { checkComponentArgs, withComponentArgs } from './componentArgs.ts'
import { isReplicated, type ServerPlan, serversOf } from './controlPlanes.ts'
import type { LocalClusterDeps } from './deps.ts'
import { freePort } from './freePort.ts'
import { historyOf, withHistory } from './historyLimits.ts'
import { checkIngress, ingress, ingressIsThere } from './ingressAddon.ts'
import { lastLinesOf, tellingLine } from './logEnd.ts'
import { limitsOf, withLogLimits } from './logLimits.ts'
import { nodesReady, nodesReadyMs } from './nodesReady.ts'
import { runningProcess } from './processes.ts'
import { checkLayout, withLayout } from './processLayout.ts'
import { checkProxyMode, withProxyMode } from './proxyMode.ts'
import { checkPublished } from './publishedPorts.ts'
import { refuseChanges } from './refuseChanges.ts'
import { type RestartRecord, readRestarts } from './restartRecord.ts'
import { runsServer } from './runningServers.ts'
import { loadPki } from './sharedPki.ts'
import { simulatedNodesOf } from './simulatedPlan.ts'

const serverReadyMs = 30_000
/** They start at the same time, and wait for their etcd. */
const serversReadyMs = 60_000

interface UpResult {
  readonly created: boolean
  readonly status: ClusterStatus
}

export async function bringUp(deps: LocalClusterDeps, paths: ClusterPaths, name: string, options: UpOptions, progress: Progress): Promise<UpResult> {
  await checkComponentArgs(options, deps.clock)
  if (options.autostart) await checkSystemd(deps, '--autostart', 'without --autostart, run "skiff start" after each boot')
  const kept = await readState(paths)
  if (kept) refuseChanges(kept, options)
  const backup = await backupPlanOf(kept?.backup, options.backup, deps.clock.now())
  const limited = kept && (await withHistory(paths, await withLogLimits(paths, await withComponentArgs(paths, kept, options), options), options))
  const backedUp = limited && (await withBackup(paths, limited, backup))
  const laidOut = backedUp && (await withLayout(paths, backedUp, options))
  const served = laidOut && (await withProxyMode(deps.exec, paths, laidOut, options.proxyMode))
  const found = served && (await withAddon(paths, served, ingress, options.ingress))
  const state = found ?? (await progress.step('Planning the cluster', () => plan(deps, paths, name, { ...options, backupPlan: backup }, progress)))
  await noteUnchanged(paths, state, options, progress)
  const sizes = await logSizes(paths, state)
  try {
    await start({ deps, paths, state, progress }, options)
    if (options.autostart) await progress.step('Start at boot', () => installUnit(deps, unitOf(deps, state), false))
    return { created: !found, status: await statusOf(deps, paths, state) }
  } catch (error) {
    throw await withEvidence(error, paths, state, sizes)
  }
}

/** The server reads these when it starts. */
async function noteUnchanged(
  paths: ClusterPaths,
  state: ClusterState,
  { verbosity, logMaxSize, logMaxFiles, history, historySize, layout }: UpOptions,
  progress: Progress,
): Promise<void> {
  if (!(await runsServer(paths, state))) return
  const { name } = state
  const restart = `skiff stop ${name}; skiff start ${name}`
  if (verbosity !== undefined) progress.note(`Cluster "${name}" runs: -v ${verbosity} changes nothing. It is for a start: ${restart} -v ${verbosity}`)
  if (logMaxSize !== undefined || logMaxFiles !== undefined)
    progress.note(`Cluster "${name}" runs: the limits of its logs apply from its next start on: ${restart}`)
  if (history !== undefined || historySize !== undefined)
    progress.note(`Cluster "${name}" runs: the limits of its history apply from its next start on: ${restart}`)
  if (layout !== undefined) progress.note(`Cluster "${name}" runs: --layout ${layout} applies from its next start on: ${restart}`)
}

interface Start {
  readonly deps: LocalClusterDeps
  readonly paths: ClusterPaths
  readonly state: ClusterState
  readonly progress: Progress
}

async function start(starting: Start, options: UpOptions): Promise<void> {
  const { deps, paths, state, progress } = starting
  const pki = await progress.step('Certificates', () => loadPki(deps, paths, state))
  if (state.network) await writeTag(markOf(deps.home, state.name, state.id))
  await ensureClusterNetwork(deps, state)
  const before = { ended: endsOfServers(state, await readRestarts(paths)), startedMs: deps.clock.monotonicMs() }
  await ensureSupervisor(deps, paths, state, options.verbosity ?? state.verbosity)
  const probe = createApiProbe(state.port, pki.ca.cert, pki.admin, deps.clock)
  const servers = isReplicated(state)
    ? serversOf(state).map(({ name, port }) => ({ name, probe: createApiProbe(port, pki.ca.cert, pki.admin, deps.clock) }))
    : []
  try {
    const nodes = progress.step(`Nodes: ${state.nodes.length} with containerd, ${simulatedNodesOf(state).length} simulated`, () =>
      Promise.all(state.nodes.map((node) => ensureNode(deps, paths, state, node))),
    )
    nodes.catch(() => {})
    await nodes
    await progress.step(isReplicated(state) ? `API servers: ${servers.length} behind one endpoint` : 'API server', () =>
      probe.until(
        'an answer of /readyz',
        isReplicated(state) ? serversReadyMs : serverReadyMs,
        () => serversReady(starting, [...servers.map((server) => server.probe), probe], before),
        async () => (await notReadyServers(servers)).join(''),
      ),
    )
    const late = await nodesReady({ paths, state, progress }, probe)
    await progress.step('Default service account and cluster DNS', () => probe.until('a usable default namespace', nodesReadyMs, () => usable(state, probe)))
    if (state.ingress && state.nodes.length > 0)
      await progress.step('Ingress', () => probe.until('an ingress on every node', nodesReadyMs, () => ingressIsThere(state, probe)))
    if (late) throw late
  } catch (error) {
    // A server that cannot start would be started again and again.
    if (error instanceof ServerEnded) await stopProcesses(deps, paths)
    throw error
  } finally {
    for (const one of [probe, ...servers.map((server) => server.probe)]) one.close()
  }
}

interface PlanOptions extends UpOptions {
  readonly backupPlan: BackupPlan | undefined
}

async function plan(deps: LocalClusterDeps, paths: ClusterPaths, name: string, options: PlanOptions, progress: Progress): Promise<ClusterState> {
  const { nodes = 1, simulatedNodes = 0, port = 0, verbosity = 2, controlPlanes = 1 } = options
  if (port !== 0) await checkPort({ port, name })
  checkAdvertised(options.advertiseAddress)
  checkLayout(options.layout, controlPlanes)
  const etcd = etcdSize(options)
  if (etcd) await checkEtcd(deps, etcd, options)
  const runtime = await chooseRuntime(deps, options.runtime ?? 'auto', progress)
  const real = runtime === 'containerd' ? nodes : 0
  // Asked for real nodes where there can be none, the user still gets as many nodes.
  const simulated = simulatedNodes + (runtime === 'simulated' && simulatedNodes === 0 ? nodes : 0)
  checkMemory(simulated)
  if (options.ingress) checkIngress(real)
  await checkProxyMode(deps.exec, options.proxyMode, real)
  checkPodNetwork(options.podNetwork, real)
  await checkPublished(options.publish, real)
  const id = clusterId(deps.home, name)
  const { podCidr, serviceCidr, ipFamilies } = options
  const asked = { podCidr, serviceCidr, ipFamilies, nodes: real + simulated }
  const endpoint = port === 0 ? await freePort() : port
  let state: ClusterState = {
    format: newestFormat,
    name,
    id,
    port: endpoint,
    reach: reachOf(options),
    ...(controlPlanes > 1 ? { servers: await planServers(controlPlanes, endpoint) } : {}),
    nodes: Array.from({ length: real }, (_, index) => ({ name: `${name}-node-${index + 1}`, index })),
    simulatedNodes: Array.from({ length: simulated }, (_, index) => `${name}-sim-${index + 1}`),
    verbosity,
    layout: options.layout,
    logLimits: limitsOf({}, options),
    history: historyOf({}, options),
    ...(options.backupPlan ? { backup: options.backupPlan } : {}),
    ...(etcd ? { etcd: await planEtcd(etcd) } : {}),
    apiServerArgs: options.apiServerArgs,
    controllerManagerArgs: options.controllerManagerArgs,
    schedulerArgs: options.schedulerArgs,
    ...(options.ingress ? { ingress: true } : {}),
    proxyMode: options.proxyMode,
    ...(options.podNetwork ? { podNetwork: options.podNetwork } : {}),
    ...(options.publish ? { publish: options.publish } : {}),
    asked: { nodes, simulatedNodes, runtime, ...(etcd ? { etcd } : {}), ...(controlPlanes > 1 ? { controlPlanes } : {}) },
  }
  const keep = async (found: Pick<ClusterState, 'network' | 'ranges'>) => {
    state = { ...state, ...found }
    const mark = markOf(deps.home, name, id)
    if (found.network) await refuseTakenId(mark)
    await writeState(paths, state)
    if (found.network) await writeTag(mark)
  }
  if (real > 0) await claimNetwork(deps, { name, id, asked }, (network, ranges) => keep({ network, ranges }))
  else await keep({ ranges: rangesWithoutNetwork(id, asked) })
  return state
}

/** @throws CommandError unmetPrerequisite */
function checkPodNetwork(podNetwork: UpOptions['podNetwork'], realNodes: number): void {
  if (podNetwork === undefined || realNodes > 0) return
  throw new CommandError('unmetPrerequisite', `--pod-network ${podNetwork} is for nodes with containerd: simulated nodes have no network`)
}

/** @throws CommandError usage */
function checkAdvertised(address: string | undefined): void {
  const own = Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map((one) => one.address))
  if (address === undefined || own.includes(address)) return
  throw new CommandError('usage', `--apiserver-advertise-address ${address}: this host has no such address; it has ${own.join(', ')}`)
}

function reachOf({ advertiseAddress, controlPlaneEndpoint, certNames }: UpOptions): ReachPlan | undefined {
  const isAsked = [advertiseAddress, controlPlaneEndpoint, certNames].some((value) => value !== undefined)
  return isAsked ? { advertiseAddress, controlPlaneEndpoint, certNames } : undefined
}

/** Each server has a port of its own on loopback, behind the cluster's. */
async function planServers(count: number, endpoint: number): Promise<ServerPlan[]> {
  const ports = new Set<number>()
  while (ports.size < count) {
    const port = await freePort()
    if (port !== endpoint) ports.add(port)
  }
  return [...ports].map((port, index) => ({ name: `server-${index + 1}`, port }))
}

class ServerEnded extends CommandError {
  constructor(message: string) {
    super('internal', message)
  }
}

function endsOfServers(state: ClusterState, restarts: RestartRecord): number {
  return serversOf(state).reduce((sum, { name }) => sum + (restarts[name]?.count ?? 0), 0)
}

/** @param before how often servers had ended before this start, and when it began */
async function serversReady(
  { paths, state, deps: { clock } }: Start,
  probes: readonly ApiProbe[],
  before: { readonly ended: number; readonly startedMs: number },
): Promise<true | undefined> {
  const answers = await Promise.all(probes.map((probe) => probe.get('/readyz')))
  if (answers.every((answer) => answer?.status === 200)) return true
  const restarts = await readRestarts(paths)
  if (endsOfServers(state, restarts) > before.ended) {
    const [last] = serversOf(state)
      .flatMap(({ name }) => (restarts[name] ? [{ name, ...restarts[name] }] : []))
      .sort((a, b) => b.lastMs - a.lastMs)
    throw new ServerEnded(`${last?.name === 'server' ? 'the server' : last?.name} ended while it started: ${last?.ending}`)
  }
  if (!(await runsServer(paths, state)) && (await freeBytesOf(paths.dir)) < leastFreeBytes && clock.monotonicMs() > before.startedMs + fullDiskMs)
    throw fullDisk(paths)
  if (!(await runningProcess(paths.supervisorPid))) throw new ServerEnded('the supervisor, which starts the server, ended')
  return undefined
}

/** Pid files and logs need it. */
const leastFreeBytes = 1 << 16
/** The supervisor has tried several times to start the server by then. */
const fullDiskMs = 5000

function fullDisk({ dir }: ClusterPaths): CommandError {
  return new CommandError('unmetPrerequisite', `the disk of ${dir} is full: the server cannot start`, {
    hint: 'make room on that disk; the server starts by itself then',
  })
}

/** Empty for a single server, which needs no name. */
async function notReadyServers(servers: readonly { readonly name: string; readonly probe: ApiProbe }[]): Promise<string[]> {
  const answers = await Promise.all(servers.map(async ({ name, probe }) => ({ name, answer: await probe.get('/readyz') })))
  return answers.filter(({ answer }) => answer?.status !== 200).map(({ name, answer }) => `; ${name}: ${answer ? 'it is not ready' : 'it does not answer'}`)
}

/** Pods can be made and find names: the default ServiceAccount exists, and with real nodes the DNS service has an endpoint. */
async function usable(state: ClusterState, probe: ApiProbe): Promise<true | undefined> {
  if ((await probe.get('/api/v1/namespaces/default/serviceaccounts/default'))?.status !== 200) return undefined
  if (state.nodes.length === 0) return true
  const slices = await probe.get('/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dkube-dns')
  return slices?.status === 200 && (JSON.parse(slices.body) as { items: unknown[] }).items.length > 0 ? true : undefined
}

async function logSizes(paths: ClusterPaths, state: ClusterState): Promise<ReadonlyMap<string, number>> {
  return new Map(await Promise.all(logsOf(paths, state).map(async ({ file }) => [file, await sizeOf(file)] as const)))
}

const searchedLines = 200

/** The failure with the line of each log that explains it best, of what was written since `sizes`. Nothing is rolled back: the evidence stays. */
async function withEvidence(thrown: unknown, paths: ClusterPaths, state: ClusterState, sizes: ReadonlyMap<string, number>): Promise<CommandError> {
  const error = asCommandError(thrown)
  const message = messageOf(error)
  const exit = error instanceof CommandError ? error.exit : 'internal'
  if (error instanceof CommandError && error.serves) return error
  // What never started left no evidence worth reading.
  if (exit === 'conflict' || exit === 'unmetPrerequisite') return error as CommandError
  const told = async (file: string) => {
    const line = tellingLine(await lastLinesOf(file, searchedLines, sizes.get(file)))
    return line === undefined ? [] : [`${path.relative(paths.dir, file)}: ${line}`]
  }
  const memberLogs = (state.etcd?.members ?? []).map(({ name }) => etcdMemberPaths(paths, name).log)
  const agentLogs = state.nodes.map((node) => path.join(paths.node(node.name), 'agent.log'))
  const serverLogs = serversOf(state).map(({ name }) => paths.server(name).log)
  const balancerLogs = isReplicated(state) ? [paths.balancerLog] : []
  const details = (await Promise.all([...serverLogs, ...balancerLogs, ...memberLogs, ...agentLogs].map(told))).flat()
  const hint = `the logs are in ${paths.dir}, skiff logs ${state.name} prints them; skiff delete ${state.name} removes the cluster`
  return new CommandError(exit, message, { hint, details: details.length > 0 ? details : await told(paths.supervisorLog), cause: error })
}
