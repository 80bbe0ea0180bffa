/**
 * What the cluster knows of a CSI driver on this node (L3): its entry in the CSINode, and the Node's annotation and topology labels. The scheduler and CSI controllers
 * read them. Upstream: pkg/volume/csi/nodeinfomanager (v1.36).
 */
import type { Node } from '#api/gen/types/core.v1'
import type { CSINode, CSINodeDriver } from '#api/gen/types/storage.v1'
import type { Frozen } from '#api/machinery/meta'
import { bareMap, ownValue } from '#base/bareMap'
import { messageOf } from '#base/messageOf'
import { csiNodes, nodes } from '#client/builtIn'
import { defaultBackoff, retryOnConflict } from '#client/retryOnConflict'
import type { KubeletContext } from '../../core/context.ts'
import { ensureCsiNode, findCsiNode } from './csiNode.ts'

/** JSON on the Node: driver → the node's id there. */
const nodeIdAnnotation = 'csi.volume.kubernetes.io/nodeid'
const maxCount = 2 ** 31 - 1

export type NodeInfoDeps = Pick<KubeletContext, 'client' | 'clock' | 'random'> & { readonly config: Pick<KubeletContext['config'], 'nodeName'> }

/** What a driver says of the node. */
export interface DriverNodeInfo {
  readonly nodeId: string
  /** 0: as many as there are. */
  readonly maxVolumesPerNode: number
  readonly topology: Readonly<Record<string, string>>
}

/** Records the driver in the cluster. @throws Error that says what refused it */
export async function installDriver(deps: NodeInfoDeps, driver: string, info: DriverNodeInfo, signal: AbortSignal): Promise<void> {
  if (info.nodeId === '') throw new Error('error adding CSI driver node info: driverNodeID must not be empty')
  await inNode(deps, (node) => withDriver(node, driver, info), signal).catch(wrapped('error updating Node object with CSI driver node info'))
  const entry = driverEntry(driver, info)
  const install = async () => {
    const found = await ensureCsiNode(deps.client, deps.config.nodeName, signal)
    const known = found.spec.drivers.find(({ name }) => name === driver)
    if (known && isSame(known, entry)) return
    await writeDrivers(deps, found, [...found.spec.drivers.filter((one) => one !== known), entry], signal)
  }
  await retryOnConflict(deps, install, { options: defaultBackoff, signal }).catch(wrapped('error updating CSINode object with CSI driver node info'))
}

/** Takes the driver out of the CSINode and the Node's annotation; topology labels stay, as volumes may still need them. */
export async function uninstallDriver(deps: NodeInfoDeps, driver: string, signal: AbortSignal): Promise<void> {
  const uninstall = async () => {
    const found = await findCsiNode(deps.client, deps.config.nodeName, signal)
    const rest = found?.spec.drivers.filter(({ name }) => name !== driver) ?? []
    if (found && rest.length < found.spec.drivers.length) await writeDrivers(deps, found, rest, signal)
  }
  await retryOnConflict(deps, uninstall, { options: defaultBackoff, signal }).catch(wrapped('error uninstalling CSI driver from CSINode object'))
  await inNode(deps, (node) => withoutDriver(node, driver), signal).catch(wrapped('error removing CSI driver node info from Node object'))
}

const wrapped = (what: string) => (error: unknown) => Promise.reject(new Error(`${what}: ${messageOf(error)}`, { cause: error }))

function driverEntry(name: string, { nodeId, maxVolumesPerNode, topology }: DriverNodeInfo): CSINodeDriver {
  const allocatable = maxVolumesPerNode > 0 ? { allocatable: { count: Math.min(maxVolumesPerNode, maxCount) } } : {}
  return { name, nodeID: nodeId, topologyKeys: Object.keys(topology).sort(), ...allocatable }
}

function isSame(known: Frozen<CSINodeDriver>, wanted: CSINodeDriver): boolean {
  const keys = [...(known.topologyKeys ?? [])].sort()
  return known.nodeID === wanted.nodeID && known.allocatable?.count === wanted.allocatable?.count && keys.join() === wanted.topologyKeys?.join()
}

async function writeDrivers({ client }: NodeInfoDeps, csiNode: Frozen<CSINode>, drivers: readonly Frozen<CSINodeDriver>[], signal: AbortSignal): Promise<void> {
  await client.of(csiNodes).update({ ...csiNode, spec: { ...csiNode.spec, drivers } } as Frozen<CSINode>, { signal })
}

type NodeMetadata = Pick<Node['metadata'], 'labels' | 'annotations'>
/** A merge patch; null removes. Undefined: nothing changes. */
type MetadataPatch = { readonly labels?: object; readonly annotations?: Readonly<Record<string, string | null>> } | undefined

async function inNode({ client, clock, random, config }: NodeInfoDeps, change: (node: Frozen<NodeMetadata>) => MetadataPatch, signal: AbortSignal) {
  const name = config.nodeName
  const write = async () => {
    const { metadata } = await client.of(nodes).get({ name }, { signal })
    const patch = change(metadata)
    if (patch) await client.of(nodes).patch({ name }, 'merge', { metadata: { resourceVersion: metadata.resourceVersion, ...patch } }, { signal })
  }
  await retryOnConflict({ clock, random }, write, { options: defaultBackoff, signal })
}

function withDriver({ labels = {}, annotations: noted }: Frozen<NodeMetadata>, driver: string, { nodeId, topology }: DriverNodeInfo): MetadataPatch {
  for (const [key, value] of Object.entries(topology)) {
    const current = ownValue(labels, key)
    if (current === undefined || current === value) continue
    const [reported, existing] = [`${JSON.stringify(key)}:${JSON.stringify(value)}`, `${JSON.stringify(key)}:${JSON.stringify(current)}`]
    throw new Error(`detected topology value collision: driver reported ${reported} but existing label is ${existing}`)
  }
  const ids = nodeIdsIn(noted)
  const isLabelled = Object.keys(topology).every((key) => Object.hasOwn(labels, key))
  if (isLabelled && ownValue(ids, driver) === nodeId) return undefined
  return { labels: topology, annotations: { [nodeIdAnnotation]: sortedJson({ ...ids, [driver]: nodeId }) } }
}

function withoutDriver({ annotations: noted }: Frozen<NodeMetadata>, driver: string): MetadataPatch {
  const ids = nodeIdsIn(noted)
  if (!Object.hasOwn(ids, driver)) return undefined
  const rest = Object.fromEntries(Object.entries(ids).filter(([name]) => name !== driver))
  return { annotations: { [nodeIdAnnotation]: Object.keys(rest).length > 0 ? sortedJson(rest) : null } }
}

/** @throws Error when the annotation is no JSON */
function nodeIdsIn(noted: Frozen<NodeMetadata>['annotations']): Readonly<Record<string, string>> {
  const text = ownValue(noted, nodeIdAnnotation) ?? ''
  try {
    return bareMap({ ...(text === '' ? {} : JSON.parse(text)) })
  } catch (error) {
    throw new Error(`failed to parse node's "${nodeIdAnnotation}" annotation value (${JSON.stringify(text)}) err=${messageOf(error)}`)
  }
}

function sortedJson(map: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.fromEntries(Object.entries(map).sort(([left], [right]) => (left < right ? -1 : 1))))
}
