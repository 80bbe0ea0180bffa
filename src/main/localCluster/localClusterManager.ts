/**
 * Local clusters (L5): makes, starts, stops and removes them. Each is one server process, and for every real node a set of namespaces with its
 * own containerd, which outlive the server. All of it is found again through the cluster's folder.
 */
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import type { ClusterManager, ClusterStatus, ProcessStatus, UpOptions } from '#cli/clusterManager'
import { CommandError } from '#cli/exitCodes'
import type { Progress } from '#cli/progress'
import type { Exec } from '#host/exec'
import { readTextIfExists } from '#host/files'
import { withLockFile } from '#host/lockFile'
import { isRunning } from '#host/processes'
import { backupsOf } from '../apiserver/rotatingFile.ts'
import { ensurePki, forgetLeaves, type Pki } from '../pki/pki.ts'
import { controlNetwork, ensureNodeNetwork, nodeNetwork } from '../vnode/clusterNetwork.ts'
import { destroyVnode, ensureVnode, vnodeProcess } from '../vnode/vnode.ts'
import { type ApiProbe, createApiProbe, nodeReadiness } from './apiProbe.ts'
import { certificateFolders, certificatesOf } from './certificateList.ts'
import { chooseRuntime } from './chooseRuntime.ts'
import { claimNetwork, ensureClusterNetwork, rangesWithoutNetwork, removeClusterNetwork } from './clusterNetworks.ts'
import { type ClusterPaths, type ClusterState, clusterId, clusterPaths, logsOf, nodeCgroup, readState, servingHosts, writeState } from './clusterState.ts'
import { checkComponentArgs, withComponentArgs } from './componentArgs.ts'
import { freePort, isPortFree } from './freePort.ts'
import { kubeconfigEntry } from './kubeconfigEntry.ts'
import { listImages, loadImages } from './nodeImages.ts'
import { endProcess, runningProcess, startDetached } from './processes.ts'
import { refuseChanges } from './refuseChanges.ts'
import { serverFlags } from './serverFlags.ts'

export interface LocalClusterDeps {
  readonly clock: Clock
  readonly exec: Exec
  /** SKIFF_HOME or its default. */
  readonly home: string
  readonly isRoot: boolean
  readonly platform: string
  /** Words that run this program: node and its entry. */
  readonly self: readonly string[]
}

const serverReadyMs = 30_000
const nodesReadyMs = 60_000
const serverGraceMs = 15_000
/** Longer than the longest `up`. */
const lockTimeoutMs = 180_000

export function createLocalClusterManager(deps: LocalClusterDeps): ClusterManager {
  const pathsOf = (name: string) => clusterPaths(deps.home, name)
  const stateOf = async (name: string): Promise<ClusterState> => {
    const state = await readState(pathsOf(name))
    if (!state) throw new CommandError('notFound', `there is no cluster "${name}"`)
    return state
  }
  return {
    names: async () => {
      const found = await fs.readdir(path.join(deps.home, 'clusters')).catch(() => [] as string[])
      const states = await Promise.all(found.map((name) => readState(pathsOf(name))))
      return found.filter((_, i) => states[i] !== undefined).sort()
    },
    exists: async (name) => (await readState(pathsOf(name))) !== undefined,
    up: (name, options, progress) => exclusively(deps, name, progress, () => up(deps, pathsOf(name), name, options, progress)),
    stop: (name, progress) =>
      exclusively(deps, name, progress, async () => {
        await stateOf(name)
        await progress.step('Stopping the server and the agents', () => stopServer(deps, pathsOf(name)))
      }),
    delete: (name, progress, dryRun) => exclusively(deps, name, progress, async () => remove(deps, pathsOf(name), await stateOf(name), progress, dryRun)),
    status: async (name) => statusOf(deps, pathsOf(name), await stateOf(name)),
    ask: async (name, path, body) => ask(deps, pathsOf(name), await stateOf(name), path, body),
    logFiles: async (name) => {
      const logs = logsOf(pathsOf(name), await stateOf(name))
      const there = await Promise.all(
        logs.map(async ({ source, file }) => ({ source, files: (await isThere(file)) ? [file, ...(await movedAside(file))] : [] })),
      )
      return there.filter(({ files }) => files.length > 0)
    },
    kubeconfig: async (name) => kubeconfigEntry(await stateOf(name), await loadPki(pathsOf(name), await stateOf(name), deps.clock)),
    rememberKubeconfig: (name, file, previousContext) =>
      exclusively(deps, name, undefined, async () => {
        const state = await stateOf(name)
        const known = state.kubeconfigs ?? []
        const before = known.find((place) => place.file === file)
        const place = { file, previousContext: previousContext || (before?.previousContext ?? '') }
        await writeState(pathsOf(name), { ...state, kubeconfigs: [...known.filter((one) => one !== before), place] })
      }),
    kubeconfigs: async (name) => (await stateOf(name)).kubeconfigs ?? [],
    certificates: async (name) => certificatesOf(pathsOf(name), await stateOf(name)),
    renewCertificates: (name, progress) =>
      exclusively(deps, name, progress, async () => {
        const state = await stateOf(name)
        const paths = pathsOf(name)
        await progress.step('Renewing certificates', async () => {
          await Promise.all(certificateFolders(paths, state).map(forgetLeaves))
          await loadPki(paths, state, deps.clock)
        })
        // The server looks at its certificates, and hands the nodes theirs.
        const server = await runningProcess(paths.serverPid)
        if (server) process.kill(server.pid, 'SIGHUP')
      }),
    loadImages: async (name, files, progress) => loadImages(deps.exec, pathsOf(name), await stateOf(name), files, progress),
    images: async (name) => listImages(deps.exec, pathsOf(name), await stateOf(name)),
  }
}

function isThere(file: string): Promise<boolean> {
  return fs.access(file).then(
    () => true,
    () => false,
  )
}

async function movedAside(file: string): Promise<string[]> {
  return (await backupsOf(file)).map((backup) => backup.file)
}

/** Two commands that change one cluster go one after the other: two `up` at once would make its network and start its server twice. */
async function exclusively<T>(deps: LocalClusterDeps, name: string, progress: Progress | undefined, work: () => Promise<T>): Promise<T> {
  const { lock } = clusterPaths(deps.home, name)
  await fs.mkdir(path.dirname(lock), { recursive: true, mode: 0o700 })
  const holder = (pid: number | undefined) => `another command${pid === undefined ? '' : ` (process ${pid})`}`
  const options = {
    clock: deps.clock,
    timeoutMs: lockTimeoutMs,
    onWait: (pid: number | undefined) => progress?.note(`Waiting for ${holder(pid)} that works on cluster "${name}"`),
    refuse: (pid: number | undefined) =>
      new CommandError('conflict', `${holder(pid)} works on cluster "${name}"`, { hint: `try again when it has ended; if none runs, remove ${lock}` }),
  }
  return withLockFile(lock, options, work)
}

async function up(
  deps: LocalClusterDeps,
  paths: ClusterPaths,
  name: string,
  options: UpOptions,
  progress: Progress,
): Promise<{ created: boolean; status: ClusterStatus }> {
  await checkComponentArgs(options, deps.clock)
  const kept = await readState(paths)
  if (kept) refuseChanges(kept, options)
  const found = kept && (await withComponentArgs(paths, kept, options))
  const state = found ?? (await progress.step('Planning the cluster', () => plan(deps, paths, name, options, progress)))
  const pki = await progress.step('Certificates', () => loadPki(paths, state, deps.clock))
  await ensureClusterNetwork(deps, state)
  const probe = createApiProbe(state.port, pki.ca.cert, pki.admin, deps.clock)
  try {
    const nodes = progress.step(`Nodes: ${state.nodes.length} with containerd, ${state.simulatedNodes.length} simulated`, () => startNodes(deps, paths, state))
    nodes.catch(() => {})
    await startServer(deps, paths, state, options)
    await nodes
    await progress.step('API server', () => probe.until('an answer of /readyz', serverReadyMs, () => serverReady(paths, probe)))
    await progress.step('Nodes ready', () => probe.until('the readiness of every node', nodesReadyMs, () => allReady(state, probe)))
    await progress.step('Default service account and cluster DNS', () => probe.until('a usable default namespace', nodesReadyMs, () => usable(state, probe)))
    return { created: !found, status: await statusOf(deps, paths, state) }
  } catch (error) {
    throw await withEvidence(error, paths, state)
  } finally {
    probe.close()
  }
}

async function plan(deps: LocalClusterDeps, paths: ClusterPaths, name: string, options: UpOptions, progress: Progress): Promise<ClusterState> {
  const { nodes = 1, simulatedNodes = 0, port = 0, verbosity = 2 } = options
  const runtime = await chooseRuntime(deps, options.runtime ?? 'auto', progress)
  const real = runtime === 'containerd' ? nodes : 0
  // Asked for real nodes where there can be none, the user still gets as many nodes.
  const simulated = simulatedNodes + (runtime === 'simulated' && simulatedNodes === 0 ? nodes : 0)
  const id = clusterId(deps.home, name)
  const asked = { podCidr: options.podCidr, serviceCidr: options.serviceCidr, nodes: real + simulated }
  let state: ClusterState = {
    name,
    id,
    port: port === 0 ? await freePort() : port,
    nodes: Array.from({ length: real }, (_, index) => ({ name: `${name}-node-${index + 1}`, index })),
    simulatedNodes: Array.from({ length: simulated }, (_, index) => `${name}-sim-${index + 1}`),
    verbosity,
    apiServerArgs: options.apiServerArgs,
    controllerManagerArgs: options.controllerManagerArgs,
    schedulerArgs: options.schedulerArgs,
    asked: { nodes, simulatedNodes, runtime },
  }
  const keep = async (found: Pick<ClusterState, 'network' | 'ranges'>) => {
    state = { ...state, ...found }
    await writeState(paths, state)
  }
  if (real > 0) await claimNetwork(deps, { name, id, asked }, (network, ranges) => keep({ network, ranges }))
  else await keep({ ranges: rangesWithoutNetwork(id, asked) })
  return state
}

function loadPki(paths: ClusterPaths, state: ClusterState, clock: Clock): Promise<Pki> {
  return ensurePki(paths.pki, servingHosts(state), clock.now())
}

async function startNodes(deps: LocalClusterDeps, paths: ClusterPaths, state: ClusterState): Promise<void> {
  const { network } = state
  if (!network) return
  await Promise.all(
    state.nodes.map(async (node) => {
      const link = nodeNetwork(network, state.id, node.index)
      await ensureNodeNetwork(deps.exec, network, link)
      await ensureVnode({ name: node.name, dir: paths.node(node.name), network: link, resolvConf: await hostResolvConf() }, deps.clock)
    }),
  )
}

/** The host's name servers, without those that only the host itself can reach. */
async function hostResolvConf(): Promise<string> {
  const text = (await readTextIfExists('/etc/resolv.conf')) ?? ''
  const lines = text.split('\n').filter((line) => !/^\s*nameserver\s+(127\.|::1)/.test(line))
  return lines.join('\n').trim()
}

async function startServer(deps: LocalClusterDeps, paths: ClusterPaths, state: ClusterState, options: UpOptions): Promise<void> {
  if (await runningProcess(paths.serverPid)) return
  if (!(await isPortFree(state.port))) {
    throw new CommandError('conflict', `port ${state.port} of 127.0.0.1, which belongs to cluster "${state.name}", is in use`, {
      hint: `end what listens there (ss -ltnp "sport = :${state.port}" names it), or delete the cluster and make it with another --port`,
    })
  }
  const [node = '', ...entry] = deps.self
  await startDetached(
    [node, ...serverFlags, ...entry, 'server', '--cluster-dir', paths.dir, '--v', String(options.verbosity ?? state.verbosity)],
    paths.serverLog,
    paths.serverPid,
    {
      SKIFF_CLUSTER: state.name,
    },
  )
}

async function serverReady(paths: ClusterPaths, probe: ApiProbe): Promise<true | undefined> {
  if (!(await runningProcess(paths.serverPid))) throw new CommandError('internal', 'the server process ended')
  return (await probe.get('/readyz'))?.status === 200 ? true : undefined
}

async function allReady(state: ClusterState, probe: ApiProbe): Promise<true | undefined> {
  const nodes = await nodeReadiness(probe)
  return [...state.nodes.map((node) => node.name), ...state.simulatedNodes].every((name) => nodes.get(name)?.ready) ? true : undefined
}

/** Pods can be made and find names: the default ServiceAccount exists, and with real nodes the DNS service has an endpoint. */
async function usable(state: ClusterState, probe: ApiProbe): Promise<true | undefined> {
  if ((await probe.get('/api/v1/namespaces/default/serviceaccounts/default'))?.status !== 200) return undefined
  if (state.nodes.length === 0) return true
  const slices = await probe.get('/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dkube-dns')
  return slices?.status === 200 && (JSON.parse(slices.body) as { items: unknown[] }).items.length > 0 ? true : undefined
}

async function stopServer(deps: LocalClusterDeps, paths: ClusterPaths): Promise<void> {
  const server = await runningProcess(paths.serverPid)
  if (server) await endProcess(server, serverGraceMs, deps.clock)
  await fs.rm(paths.serverPid, { force: true })
}

async function remove(deps: LocalClusterDeps, paths: ClusterPaths, state: ClusterState, progress: Progress, dryRun: boolean): Promise<string[]> {
  const { network } = state
  const traces = [
    `processes of cluster "${state.name}"`,
    ...state.nodes.flatMap((node) => [`node ${node.name} with its containers, mounts and cgroup ${nodeCgroup(state, node)}`]),
    ...(network ? [...networksOf(network, state).map(({ namespace }) => `network namespace ${namespace}`), `bridge ${network.bridge}`] : []),
    `folder ${paths.dir}`,
  ]
  if (dryRun) return traces
  await progress.step('Stopping the server and the agents', () => stopServer(deps, paths))
  if (network) {
    await progress.step(`Removing ${state.nodes.length} ${state.nodes.length === 1 ? 'node' : 'nodes'}`, async () => {
      await Promise.all(
        state.nodes.map((node) =>
          destroyVnode(deps.exec, paths.node(node.name), nodeNetwork(network, state.id, node.index), nodeCgroup(state, node), deps.clock),
        ),
      )
      await removeClusterNetwork(deps, state)
    })
  }
  await progress.step('Removing files', () => fs.rm(paths.dir, { recursive: true, force: true }))
  return traces
}

function networksOf(network: NonNullable<ClusterState['network']>, { id, nodes }: ClusterState) {
  return [...nodes.map(({ index }) => nodeNetwork(network, id, index)), controlNetwork(network, id)]
}

async function ask(deps: LocalClusterDeps, paths: ClusterPaths, state: ClusterState, path: string, body: unknown): ReturnType<ApiProbe['get']> {
  const pki = await loadPki(paths, state, deps.clock)
  const probe = createApiProbe(state.port, pki.ca.cert, pki.admin, deps.clock)
  try {
    return await (body === undefined ? probe.get(path) : probe.post(path, body))
  } finally {
    probe.close()
  }
}

async function statusOf(deps: LocalClusterDeps, paths: ClusterPaths, state: ClusterState): Promise<ClusterStatus> {
  const server = await runningProcess(paths.serverPid)
  const pki = await loadPki(paths, state, deps.clock)
  const probe = createApiProbe(state.port, pki.ca.cert, pki.admin, deps.clock)
  try {
    const answering = server !== undefined && (await probe.get('/readyz'))?.status === 200
    const readiness = answering ? await nodeReadiness(probe) : new Map<string, { ready: boolean; address: string }>()
    const nodes = [
      ...state.nodes.map((node) => ({
        name: node.name,
        runtime: 'containerd' as const,
        ready: readiness.get(node.name)?.ready ?? false,
        address: state.network ? nodeNetwork(state.network, state.id, node.index).address : '',
      })),
      ...state.simulatedNodes.map((name) => ({
        name,
        runtime: 'simulated' as const,
        ready: readiness.get(name)?.ready ?? false,
        address: readiness.get(name)?.address ?? '',
      })),
    ]
    return {
      name: state.name,
      server: `https://127.0.0.1:${state.port}`,
      running: server !== undefined,
      ready: answering && nodes.every((node) => node.ready),
      nodes,
      pids: [...(server ? [{ role: 'server' as const, pid: server.pid }] : []), ...(await nodeProcesses(paths, state))],
      directory: paths.dir,
    }
  } finally {
    probe.close()
  }
}

/** The processes of the nodes: agents as the server wrote them down, process 1 and containerd from the node itself. */
async function nodeProcesses(paths: ClusterPaths, state: ClusterState): Promise<ProcessStatus[]> {
  const written = JSON.parse((await readTextIfExists(paths.processes)) ?? '[]') as (ProcessStatus & { startTime: string })[]
  const alive = await Promise.all(written.map((one) => isRunning({ pid: one.pid, startTime: one.startTime })))
  const agents = written.filter((_, i) => alive[i]).map(({ role, pid, node }) => ({ role, pid, ...(node === undefined ? {} : { node }) }))
  const own = await Promise.all(
    state.nodes.map(async (node): Promise<ProcessStatus[]> => {
      const init = await vnodeProcess(paths.node(node.name))
      if (!init) return []
      const children = ((await readTextIfExists(`/proc/${init.pid}/task/${init.pid}/children`)) ?? '').split(' ').filter(Boolean)
      const names = await Promise.all(children.map((pid) => readTextIfExists(`/proc/${pid}/comm`)))
      const containerd = children.find((_, i) => names[i]?.trim() === 'containerd')
      return [
        { role: 'init' as const, pid: init.pid, node: node.name },
        ...(containerd ? [{ role: 'containerd' as const, pid: Number(containerd), node: node.name }] : []),
      ]
    }),
  )
  return [...agents, ...own.flat()]
}

/** The failure with the last lines of the logs and where the rest is. Nothing is rolled back: the evidence stays. */
async function withEvidence(error: unknown, paths: ClusterPaths, state: ClusterState): Promise<CommandError> {
  const message = messageOf(error)
  const exit = error instanceof CommandError ? error.exit : 'internal'
  // What never started left no evidence worth reading.
  if (exit === 'conflict') return error as CommandError
  const files = [paths.serverLog, ...state.nodes.map((node) => path.join(paths.node(node.name), 'agent.log'))]
  const tails = await Promise.all(
    files.map(async (file) => {
      const text = ((await readTextIfExists(file)) ?? '').trim()
      return text ? `\n--- last lines of ${file}\n${text.split('\n').slice(-20).join('\n')}` : ''
    }),
  )
  return new CommandError(exit, message + tails.join(''), { hint: `logs are in ${paths.dir}; skiff delete ${state.name} removes the cluster`, cause: error })
}
