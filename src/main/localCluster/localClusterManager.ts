/**
 * Local clusters (L5): makes, starts, stops and removes them. Each is one server process, or several behind a balancer, and for every real node a set of namespaces with its
 * own containerd, which outlive the server. All of it is found again through the cluster's folder.
 */
import fs from 'node:fs/promises'
import path from 'node:path'
import { messageOf } from '#base/messageOf'
import type { ClusterManager, ClusterStatus, Removal } from '#cli/clusterManager'
import { CommandError } from '#cli/exitCodes'
import type { Progress } from '#cli/progress'
import { exists, freeBytesOf, listIfExists } from '#host/files'
import { backupsOf } from '../apiserver/rotatingFile.ts'
import { forgetLeaves } from '../pki/pki.ts'
import { checkSystemd, installUnit, removeUnit, unitText } from '../systemd/units.ts'
import { controlNetwork, nodeNetwork } from '../vnode/clusterNetwork.ts'
import { destroyVnode } from '../vnode/vnode.ts'
import { addonsOf, setAddon } from './addons.ts'
import type { ApiProbe } from './apiProbe.ts'
import { askCluster } from './askCluster.ts'
import { unitNameOf, unitOf } from './autostart.ts'
import { bringUp } from './bringUp.ts'
import { certificateFolders, certificatesOf } from './certificateList.ts'
import { createNodeGroup, deleteNodeGroup, nodeGroupStatuses, scaleNodeGroup } from './changeNodeGroups.ts'
import { addNodes, type Change, removeNodes } from './changeNodes.ts'
import { exclusively, exclusivelyToDelete } from './clusterLock.ts'
import { removeClusterNetwork } from './clusterNetworks.ts'
import { stopProcesses } from './clusterProcesses.ts'
import { type ClusterPaths, type ClusterState, clusterId, clusterPaths, logsOf, nodeCgroup, readState, writeState } from './clusterState.ts'
import { statusOf } from './clusterStatus.ts'
import { isDescribed, isOnlyRestored, markOf, removeTag } from './clusterTags.ts'
import type { LocalClusterDeps } from './deps.ts'
import { kubeconfigEntry } from './kubeconfigEntry.ts'
import { localVolumesOf } from './localVolumes.ts'
import { listImages, loadImages } from './nodeImages.ts'
import { prune } from './prune.ts'
import { findRemains, removeRemains } from './remains.ts'
import { tellServers } from './runningServers.ts'
import { loadPki } from './sharedPki.ts'

export function createLocalClusterManager(deps: LocalClusterDeps): ClusterManager {
  const pathsOf = (name: string) => clusterPaths(deps.home, name)
  const stateOf = async (name: string): Promise<ClusterState> => {
    const state = await readState(pathsOf(name))
    if (state) return state
    if (await isOnlyRestored(pathsOf(name))) {
      throw new CommandError('notFound', `cluster "${name}" was restored and never started`, { hint: `start it with: skiff up ${name}` })
    }
    throw new CommandError('notFound', `there is no cluster "${name}"`)
  }
  const change = (name: string, progress: Progress, act: (parts: Change, probe: ApiProbe) => Promise<void>) =>
    exclusively(deps, name, progress, async () => {
      const [paths, state] = [pathsOf(name), await stateOf(name)]
      await askCluster(deps, paths, state, (probe) => act({ paths, state, progress }, probe))
    })
  return {
    // A cluster whose description is damaged is one, too: it can be deleted.
    names: async () => {
      const found = await listIfExists(path.join(deps.home, 'clusters'))
      const there = await Promise.all(found.map(async (name) => (await exists(pathsOf(name).state)) || isOnlyRestored(pathsOf(name))))
      return found.filter((_, i) => there[i]).sort()
    },
    // What this user may not read is there: the commands that read it say so.
    exists: async (name) => (await isDescribed(pathsOf(name).dir)) || isOnlyRestored(pathsOf(name)),
    isGone: async (directory) => !(await isDescribed(directory)),
    up: (name, options, progress) => exclusively(deps, name, progress, () => bringUp(deps, pathsOf(name), name, options, progress)),
    stop: (name, progress) =>
      exclusively(deps, name, progress, async () => {
        await stateOf(name)
        await progress.step('Stopping the server and the agents', () => stopProcesses(deps, pathsOf(name)))
      }),
    delete: (name, progress, dryRun) =>
      exclusivelyToDelete(deps, name, progress, async () => remove(deps, pathsOf(name), await stateToRemove(deps, name), progress, dryRun)),
    prune: (progress, dryRun) => prune(deps, progress, dryRun),
    status: async (name) => {
      const paths = pathsOf(name)
      const state = await readState(paths)
      if (!state && (await isOnlyRestored(paths))) return restoredStatus(name, paths.dir)
      return statusOf(deps, paths, state ?? (await stateOf(name)))
    },
    addNodes: (name, count, like, progress) => change(name, progress, (parts, probe) => addNodes(parts, probe, count, like)),
    removeNodes: (name, count, progress) => change(name, progress, (parts, probe) => removeNodes(parts, probe, count)),
    createNodeGroup: (name, group, progress) => change(name, progress, (parts, probe) => createNodeGroup(parts, probe, group)),
    scaleNodeGroup: (name, group, size, progress) => change(name, progress, (parts, probe) => scaleNodeGroup(parts, probe, group, size)),
    deleteNodeGroup: (name, group, progress) => change(name, progress, (parts, probe) => deleteNodeGroup(parts, probe, group)),
    nodeGroups: async (name) => {
      const state = await stateOf(name)
      return askCluster(deps, pathsOf(name), state, (probe) => nodeGroupStatuses(state, probe))
    },
    unit: async (name) => unitText(unitOf(deps, await stateOf(name))),
    installUnit: async (name) => {
      await checkSystemd(deps, 'skiff server install', `"skiff server run ${name}" is what the unit would run`)
      const unit = unitOf(deps, await stateOf(name))
      await installUnit(deps, unit, true)
      return unit.name
    },
    removeUnit: async (name) => {
      await checkSystemd(deps, 'skiff server uninstall', 'without systemd, a cluster has no unit')
      return removeUnit(deps, unitNameOf(await stateOf(name)), true)
    },
    ask: async (name, path, body, method) => askCluster(deps, pathsOf(name), await stateOf(name), (probe) => askWith(probe, path, body, method)),
    logFiles: async (name) => {
      const logs = logsOf(pathsOf(name), await stateOf(name))
      const there = await Promise.all(
        logs.map(async ({ source, file }) => ({ source, files: (await exists(file)) ? [file, ...(await movedAside(file))] : [] })),
      )
      return there.filter(({ files }) => files.length > 0)
    },
    kubeconfig: async (name) => {
      const [paths, state] = [pathsOf(name), await stateOf(name)]
      return { ...kubeconfigEntry(state, await loadPki(deps, paths, state)), directory: paths.dir }
    },
    rememberKubeconfig: (name, file, previousContext) =>
      exclusively(deps, name, undefined, async () => {
        const state = await stateOf(name)
        const known = state.kubeconfigs ?? []
        const before = known.find((place) => place.file === file)
        const place = { file, previousContext: previousContext || (before?.previousContext ?? '') }
        await writeState(pathsOf(name), { ...state, kubeconfigs: [...known.filter((one) => one !== before), place] })
      }),
    kubeconfigs: async (name) => (await stateToRemove(deps, name)).state.kubeconfigs ?? [],
    certificates: async (name) => certificatesOf(pathsOf(name), await stateOf(name)),
    uploadCertificates: async (name, key) => {
      const [paths, state] = [pathsOf(name), await stateOf(name)]
      const { uploadCertificates } = await import('./uploadCertificates.ts')
      await askCluster(deps, paths, state, (probe) => uploadCertificates(deps, paths, state, key, probe))
    },
    renewCertificates: (name, progress) =>
      exclusively(deps, name, progress, async () => {
        const state = await stateOf(name)
        const paths = pathsOf(name)
        await progress.step('Renewing certificates', async () => {
          await Promise.all(certificateFolders(paths, state).map(forgetLeaves))
          await loadPki(deps, paths, state)
        })
        // Each server looks at its certificates, and one hands the nodes theirs.
        await tellServers(paths, state)
      }),
    etcdMembers: async (name) => (await administer()).etcdMembers(deps, pathsOf(name), await stateOf(name)),
    addEtcdMember: (name, options, progress) =>
      exclusively(deps, name, progress, async () => (await administer()).addMember(deps, pathsOf(name), await stateOf(name), options, progress)),
    promoteEtcdMember: (name, member, progress) =>
      exclusively(deps, name, progress, async () => (await administer()).promoteMember(deps, pathsOf(name), await stateOf(name), member, progress)),
    moveEtcdLeader: (name, member, progress) =>
      exclusively(deps, name, progress, async () => (await administer()).moveLeader(deps, pathsOf(name), await stateOf(name), member, progress)),
    defragmentEtcd: (name, member, progress) =>
      exclusively(deps, name, progress, async () => (await administer()).defragmentMembers(deps, pathsOf(name), await stateOf(name), member, progress)),
    removeEtcdMember: (name, member, progress) =>
      exclusively(deps, name, progress, async () => (await administer()).removeMember(deps, pathsOf(name), await stateOf(name), member, progress)),
    setAddon: (name, addon, wanted, progress) =>
      exclusively(deps, name, progress, async () => setAddon(deps, pathsOf(name), await stateOf(name), { addon, wanted }, progress)),
    addons: async (name) => addonsOf(await stateOf(name)),
    loadImages: async (name, files, progress) => loadImages(deps.exec, pathsOf(name), await stateOf(name), files, progress),
    images: async (name) => listImages(deps.exec, pathsOf(name), await stateOf(name)),
  }
}

/** Loaded by the commands that need it. */
const administer = () => import('../etcd/changeMembers.ts')

async function movedAside(file: string): Promise<string[]> {
  return (await backupsOf(file)).map((backup) => backup.file)
}

interface StateToRemove {
  readonly state: ClusterState
  /** Why the description could not be read. */
  readonly unread?: string
}

async function restoredStatus(name: string, directory: string): Promise<ClusterStatus> {
  const none = { nodes: [], servers: [], etcd: [], pids: [], restarts: [] }
  return { name, server: '', running: false, supervised: false, ready: false, ...none, directory, freeBytes: await freeBytesOf(directory), restored: true }
}

/** When the description cannot be read, a state made from the cluster's name and place: its marks on the host follow from those. */
async function stateToRemove(deps: LocalClusterDeps, name: string): Promise<StateToRemove> {
  const paths = clusterPaths(deps.home, name)
  const made = { name, id: clusterId(deps.home, name), port: 0, nodes: [], simulatedNodes: [], verbosity: 0 }
  try {
    const state = await readState(paths)
    if (state) return { state }
  } catch (error) {
    return { state: made, unread: messageOf(error) }
  }
  if (await isOnlyRestored(paths)) return { state: made }
  throw new CommandError('notFound', `there is no cluster "${name}"`)
}

async function remove(deps: LocalClusterDeps, paths: ClusterPaths, { state, unread }: StateToRemove, progress: Progress, dryRun: boolean): Promise<Removal> {
  const { network } = state
  const left = unread === undefined ? [] : [`${unread}: kubeconfig files that its description named may still have its entry`]
  if (unread !== undefined) progress.note(`The description of cluster "${state.name}" cannot be read: removing what carries its marks`)
  const volumes = await localVolumesOf(paths, state)
  const traces = [
    `processes of cluster "${state.name}"`,
    ...state.nodes.flatMap((node) => [`node ${node.name} with its containers, mounts and cgroup ${nodeCgroup(state, node)}`]),
    ...(network ? [...networksOf(network, state).map(({ namespace }) => `network namespace ${namespace}`), `bridge ${network.bridge}`] : []),
    ...(state.etcd ? [`members of etcd ${state.etcd.members.map((member) => member.name).join(', ')} with their data`] : []),
    ...volumes,
    `folder ${paths.dir}`,
  ]
  if (dryRun) return { removed: traces, left: [] }
  for (const line of volumes) progress.note(`Removing ${line}`)
  await removeUnit(deps, unitNameOf(state), false)
  await progress.step('Stopping the server and the agents', () => stopProcesses(deps, paths))
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
  // Half of a node that was being started, and all of a cluster whose description is damaged.
  const mark = markOf(deps.home, state.name, state.id)
  const remains = await removeRemains(deps, mark, await findRemains(deps, mark))
  // prune needs the tag to find the rest.
  if (remains.length === 0) await removeTag(mark)
  await progress.step('Removing files', () => fs.rm(paths.dir, { recursive: true, force: true }))
  return { removed: traces, left: [...left, ...remains] }
}

function networksOf(network: NonNullable<ClusterState['network']>, { id, nodes }: ClusterState) {
  return [...nodes.map(({ index }) => nodeNetwork(network, id, index)), controlNetwork(network, id)]
}

function askWith(probe: ApiProbe, path: string, body: unknown, method: 'DELETE' | undefined): ReturnType<ApiProbe['get']> {
  if (method === 'DELETE') return probe.delete(path)
  return body === undefined ? probe.get(path) : probe.post(path, body)
}
