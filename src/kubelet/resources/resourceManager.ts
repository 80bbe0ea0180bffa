/**
 * Allocates the node's CPUs, memory and devices (L3): whether a pod gets its requests, the options of each container, and the node's capacity.
 * In order: topology/ collects hints of cpu/, memory/ and devices/ and aligns them; dra/ prepares claims; plugins/ and devices/pluginRegistry.ts register
 * plugins; cgroupTree.ts keeps the cgroups of pods and QoS classes; podResources.ts serves the result to agents.
 * Upstream: kubelet/cm/container_manager_linux.go (v1.36).
 */
import { makeDirectory } from '#host/files'
import { type CheckpointFile, checkpointFile, noCheckpoint } from '../core/checkpointFile.ts'
import { type ContainerOptions, mergeAllocations } from '../core/containerOptions.ts'
import type { FrozenContainer, FrozenPod } from '../core/containers.ts'
import type { KubeletBase } from '../core/context.ts'
import { formatCpuSet, parseCpuSet } from '../core/cpuSet.ts'
import { cpuLayout, hugepageBytes, hugepageResource, type MachineTopology, uniformTopology } from '../core/machineTopology.ts'
import type { PluginHandler } from '../core/pluginHandler.ts'
import { findContainer } from '../core/podRuntimeStatus.ts'
import { milliUnits, quantity } from '../core/quantities.ts'
import type { Refusal } from '../core/refusal.ts'
import { checkResourcesConfig, gateEnabled } from '../core/resourceConfig.ts'
import type { ResourceManager } from '../core/resourceService.ts'
import { cdiEdits, runtimeKnowsCdi } from './cdi.ts'
import { type CpuManager, createCpuManager } from './cpu/cpuManager.ts'
import { exclusiveCpus } from './cpu/exclusiveCpus.ts'
import { noStaticOptions, staticOptions } from './cpu/options.ts'
import { createDeviceManager, type DeviceManager } from './devices/deviceManager.ts'
import { createPluginRegistry, devicesCheckpoint, type PluginRegistry } from './devices/pluginRegistry.ts'
import { createDraDrivers, type DraDrivers } from './dra/draDrivers.ts'
import { createDraManager, type DraManager } from './dra/draManager.ts'
import { simulatedDraDrivers } from './dra/simulatedDraDrivers.ts'
import { deviceMetrics, meterCpus, meterMemory, podResourcesMetrics, topologyMetrics } from './managerMetrics.ts'
import { createMemoryManager, type MemoryManager } from './memory/memoryManager.ts'
import { isPinned } from './memory/pinned.ts'
import { watchPlugins } from './plugins/pluginWatcher.ts'
import { servePodResources } from './podResources.ts'
import type { NumaInfo } from './topology/hints.ts'
import { topologyOptions } from './topology/policies.ts'
import { admissionRefusal, createTopologyManager } from './topology/topologyManager.ts'

export interface ResourceManagerDeps {
  readonly context: KubeletBase
  /** Wakes pods whose devices' health has changed. */
  wake(podUids: readonly string[]): void
  pods(): readonly FrozenPod[]
  /** Other users of plugins_registry. */
  readonly pluginHandlers?: readonly PluginHandler[] | undefined
}

interface Managers {
  readonly cpus: CpuManager
  readonly memory: MemoryManager
  readonly devices: DeviceManager
  readonly dra: DraManager
}

/** @throws Error for settings that cannot be, or remembered state that does not fit them: the kubelet then does not start, as upstream's. */
export async function createResourceManager(deps: ResourceManagerDeps): Promise<ResourceManager> {
  const { context } = deps
  const { config, machineInfo, host } = context
  checkResourcesConfig(config)
  const topology = machineInfo.topology ?? uniformTopology(machineInfo.cpus, machineInfo.memoryBytes)
  const listeners: (() => void)[] = []
  const directory = `${config.rootDirectory}/device-plugins`
  const file = (name: string): CheckpointFile => (host ? checkpointFile(name, host.path(name)) : noCheckpoint())
  if (host) await makeDirectory(host.path(directory), 0o750)
  let managers: Managers | undefined
  const plugins = deviceMetrics(context)
  const registry = createPluginRegistry({
    ...context,
    onRegistered: plugins.registered,
    directory: host?.path(directory) ?? '',
    onChange: (resource) => {
      for (const listener of listeners) listener()
      void managers?.devices.save().catch((error: unknown) => context.log.warn('Writing the device checkpoint failed', { error: String(error) }))
      deps.wake(deps.pods().flatMap((pod) => (usesResource(pod, resource) ? [pod.metadata.uid ?? ''] : [])))
    },
  })
  const drivers = createDraDrivers(context, (driver) => deps.wake(managers?.dra.podsOf(driver) ?? []))
  const own: Managers = {
    ...(await createCpusAndMemory(context, topology, file)),
    devices: await createDeviceManager(
      registry,
      topology.numaNodes.map(({ id }) => id),
      file(`${directory}/${devicesCheckpoint}`),
      (message) => context.log.warn('Device allocations of before are not known', { message }),
      plugins.timedAllocation,
    ),
    dra: await createDraManager(context, host ? drivers : simulatedDraDrivers(), file(`${config.rootDirectory}/dra_manager_state`)),
  }
  managers = own
  const metered = meterManagers(context, own, topology)
  /** Others share what is left: they move at once. */
  const poolChanged = () => {
    if (own.cpus.policy === 'none') return
    metered.poolChanged()
    deps.wake(deps.pods().map((pod) => pod.metadata.uid ?? ''))
  }
  const placement = reconciler(context, own.cpus)
  const pages = [...hugepageBytes(topology)]
  const extended = (member: 'capacity' | 'allocatable') => ({
    ...Object.fromEntries(pages.map(([size, bytes]) => [hugepageResource(size), String(bytes)])),
    ...Object.fromEntries(Object.entries(own.devices.capacity()).map(([name, counts]) => [name, String(counts[member])])),
  })
  return {
    ...allocation(context, own, metered.admit, poolChanged, placement.forget),
    preparePod: own.dra.prepare,
    containerOptions: (pod, container) => containerOptions(context, own, pod, container),
    reconcile: placement.reconcile,
    status: (pod, container) =>
      gateEnabled(config, 'ResourceHealthStatus') ? [...own.devices.status(pod.metadata.uid ?? '', container.name), ...own.dra.status(pod, container)] : [],
    capacity: () => extended('capacity'),
    allocatable: () => extended('allocatable'),
    cpuPolicy: own.cpus.policy,
    memoryPolicy: own.memory.policy,
    onChange: (listener) => void listeners.push(listener),
    run: (signal) => (host ? serve(deps, own, registry, drivers, signal) : Promise.resolve()),
  }
}

/** The topology manager over CPUs, memory and devices, with everything that is counted of it. */
function meterManagers(context: KubeletBase, { cpus, memory, devices }: Managers, topology: MachineTopology) {
  const { config } = context
  const isFixed = cpus.policy === 'static'
  const { fullPhysicalCpusOnly } = isFixed ? staticOptions(config.cpuManagerPolicyOptions, config.featureGates) : noStaticOptions
  const layout = cpuLayout(topology)
  const ofCpus = meterCpus(context, cpus, layout, fullPhysicalCpusOnly, (pod, container) => isFixed && exclusiveCpus(pod, container) > 0)
  const ofMemory = meterMemory(context, memory, (pod) => memory.policy === 'Static' && isPinned(pod))
  const metrics = topologyMetrics(context)
  const { topologyManagerPolicy: policy, topologyManagerScope: scope } = config
  const settings = { policy, scope, options: topologyOptions(config.topologyManagerPolicyOptions), onAligned: metrics.aligned }
  const manager = createTopologyManager(settings, numaInfo(topology), [devices, ofCpus.provider, ofMemory])
  // Without a policy nothing is aligned, so that a refusal has another cause.
  const isRefused = (refusal: Refusal | undefined) => refusal !== undefined && policy !== 'none'
  return { poolChanged: ofCpus.poolChanged, admit: (pod: FrozenPod) => metrics.timed(() => manager.admit(pod), isRefused) }
}

function usesResource({ spec }: FrozenPod, resource: string): boolean {
  return [...(spec.initContainers ?? []), ...spec.containers].some(({ resources }) => resources?.limits?.[resource] !== undefined)
}

async function createCpusAndMemory({ config }: KubeletBase, topology: MachineTopology, file: (name: string) => CheckpointFile) {
  const sum = (name: string, read: (text: string | undefined) => number) => read(config.systemReserved[name]) + read(config.kubeReserved[name])
  const cpus = await createCpuManager(
    cpuLayout(topology),
    {
      policy: config.cpuManagerPolicy,
      options: config.cpuManagerPolicyOptions,
      featureGates: config.featureGates,
      reservedMilliCpu: sum('cpu', milliUnits),
      reservedCpus: parseCpuSet(config.reservedSystemCPUs),
    },
    file(`${config.rootDirectory}/cpu_manager_state`),
  )
  const evicted = config.evictionHard['memory.available'] ?? ''
  const memory = await createMemoryManager(
    topology,
    {
      policy: config.memoryManagerPolicy,
      reservedMemory: config.reservedMemory,
      nodeReserved: { memory: sum('memory', quantity) + (evicted.endsWith('%') ? 0 : quantity(evicted)) },
    },
    file(`${config.rootDirectory}/memory_manager_state`),
  )
  return { cpus, memory }
}

function numaInfo({ numaNodes }: MachineTopology): NumaInfo {
  const ids = numaNodes.map(({ id }) => id)
  return { nodes: ids, distance: (from, to) => numaNodes.find(({ id }) => id === from)?.distances[ids.indexOf(to)] ?? (from === to ? 10 : 20) }
}

/** Admission and release, one pod at a time: what one is given the next must see. */
function allocation(
  { log }: KubeletBase,
  { cpus, memory, devices, dra }: Managers,
  align: (pod: FrozenPod) => Promise<Refusal | undefined>,
  poolChanged: () => void,
  forget: (podUid: string) => void,
) {
  const givers = [cpus, memory, devices]
  let turn: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const done = turn.then(work)
    turn = done.catch(() => {})
    return done
  }
  const save = () => Promise.all(givers.map((giver) => giver.save()))
  const takeBack = async (podUid: string) => {
    const held = givers.filter((giver) => giver.pods().has(podUid))
    for (const giver of givers) giver.release(podUid)
    if (held.includes(cpus)) poolChanged()
    // Releasing in memory is enough: a full disk must not stop the deletion of a pod.
    if (held.length > 0) await save().catch((error: unknown) => log.warn('Writing the checkpoints of resources failed', { error: String(error) }))
  }
  const release = async (podUid: string) => {
    forget(podUid)
    await inTurn(() => takeBack(podUid))
    await dra.unprepare(podUid)
  }
  return {
    admit: (pod: FrozenPod, fits: () => Refusal | undefined) =>
      inTurn(async (): Promise<Refusal | undefined> => {
        const uid = pod.metadata.uid ?? ''
        const refusal = fits() ?? (await align(pod))
        if (refusal) await takeBack(uid)
        else if (givers.some((giver) => giver.pods().has(uid))) {
          if (cpus.pods().has(uid)) poolChanged()
          try {
            await save()
          } catch (error) {
            await takeBack(uid)
            return admissionRefusal(error)
          }
        }
        return refusal
      }),
    release,
    releaseOthers: async (isKnown: (podUid: string) => boolean) => {
      const holding = new Set([...givers.flatMap((giver) => [...giver.pods()]), ...dra.pods()])
      for (const uid of holding) if (!isKnown(uid)) await release(uid)
    },
  }
}

async function containerOptions(
  context: KubeletBase,
  { cpus, memory, devices, dra }: Managers,
  pod: FrozenPod,
  container: FrozenContainer,
): Promise<ContainerOptions> {
  const uid = pod.metadata.uid ?? ''
  const options = mergeAllocations(await devices.optionsFor(pod, container), dra.cdiDevices(pod, container))
  const allowed = cpus.cpusOf(uid, container.name)
  const nodes = memory.nodesOf(uid, container.name)
  const placed = { ...options, cpusetCpus: allowed ? formatCpuSet(allowed) : undefined, cpusetMems: nodes.length > 0 ? formatCpuSet(nodes) : undefined }
  if (placed.cdiDevices.length === 0 || !context.host || runtimeKnowsCdi(await context.runtime.version())) return placed
  const edits = await cdiEdits(placed.cdiDevices, context.host.path)
  return {
    ...placed,
    cdiDevices: [],
    envs: [...placed.envs, ...edits.envs],
    devices: [...placed.devices, ...edits.devices],
    mounts: [...placed.mounts, ...edits.mounts],
  }
}

/** Remembers what it last sent to the runtime, and calls it only for changes. */
function reconciler({ runtime }: KubeletBase, cpus: CpuManager): { readonly reconcile: ResourceManager['reconcile']; forget(podUid: string): void } {
  /** Pod → container id → its CPUs. */
  const applied = new Map<string, Map<string, string>>()
  return {
    forget: (podUid) => void applied.delete(podUid),
    reconcile: async (pod, status) => {
      if (cpus.policy === 'none') return
      const uid = pod.metadata.uid ?? ''
      const sent = applied.get(uid) ?? new Map<string, string>()
      const now = new Map<string, string>()
      applied.set(uid, now)
      for (const { name } of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
        const record = findContainer(status, name)
        if (record?.state !== 'running') continue
        const wanted = formatCpuSet(cpus.cpusOf(uid, name) ?? [])
        const before = sent.get(record.id) ?? record.status.resources?.linux?.cpusetCpus
        if (wanted !== '' && wanted !== before) await runtime.updateContainerResources(record.id, { cpusetCpus: wanted })
        now.set(record.id, wanted)
      }
    },
  }
}

async function serve(deps: ResourceManagerDeps, managers: Managers, registry: PluginRegistry, drivers: DraDrivers, signal: AbortSignal): Promise<void> {
  const { context } = deps
  const { host, config } = context
  if (!host) return
  const handlers = [drivers.handler, ...(deps.pluginHandlers ?? [])]
  const watcher = { ...context, directory: host.path(`${config.rootDirectory}/plugins_registry`), path: host.path, handlers }
  const socket = host.path(`${config.rootDirectory}/pod-resources/kubelet.sock`)
  await Promise.all([
    registry.run(signal),
    watchPlugins(watcher, signal),
    drivers.run(signal),
    servePodResources(socket, { ...managers, pods: deps.pods, counted: podResourcesMetrics(context) }, signal),
  ])
}
