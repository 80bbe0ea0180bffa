/**
 * A container's mounts and block devices (L3): its volumes with subpaths, the managed hosts file and the termination log.
 * Upstream: kubelet_pods.go makeMounts and makeBlockVolumes, kuberuntime_container.go makeMounts (v1.36).
 */
import { randomBytes } from 'node:crypto'
import { chmod, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { VolumeMount } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { bareMap } from '#base/bareMap'
import type { Device, Mount } from '#grpc/criTypes'
import { makeDirectory, readTextIfExists } from '#host/files'
import type { FrozenContainer, FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { expand } from '../core/expansion.ts'
import type { KubeletHost } from '../core/host.ts'
import { podDirectory } from '../core/podDirectory.ts'
import { findHandler, handlerName } from '../core/runtimeHandlers.ts'
import type { ImageVolumes } from '../volumes/imageVolumes.ts'
import { bindSubPath, makeSubPath } from '../volumes/subPath.ts'
import type { MountedVolume, MountedVolumes } from '../volumes/volumePlugin.ts'
import { ConfigError } from './environment.ts'
import { hostsFile } from './hostnames.ts'

export interface MountInputs {
  readonly pod: FrozenPod
  readonly container: FrozenContainer
  readonly podIPs: readonly string[]
  readonly environment: ReadonlyMap<string, string>
  readonly volumes: MountedVolumes
  /** Volumes that are images: name → what to mount for the subpath. */
  readonly imageVolumes?: ImageVolumes | undefined
}

type FrozenMount = Frozen<VolumeMount>

/** Linux' PATH_MAX. */
const maxPathLength = 4096

const propagations: Readonly<Record<string, NonNullable<Mount['propagation']>>> = bareMap({
  None: 'PROPAGATION_PRIVATE',
  HostToContainer: 'PROPAGATION_HOST_TO_CONTAINER',
  Bidirectional: 'PROPAGATION_BIDIRECTIONAL',
})

export async function containerMounts(context: KubeletContext, host: KubeletHost, inputs: MountInputs): Promise<Mount[]> {
  const { container, pod } = inputs
  const mounts: Mount[] = []
  for (const [index, mount] of (container.volumeMounts ?? []).entries()) mounts.push(await volumeMount(context, host, inputs, mount, index))
  const has = (path: string) => mounts.some((mount) => mount.containerPath === path)
  // Addresses are not known before there is a sandbox.
  const knowsHosts = inputs.podIPs.length > 0 || pod.spec.hostNetwork
  if (knowsHosts && !has('/etc/hosts')) mounts.push({ containerPath: '/etc/hosts', hostPath: await writeHostsFile(context, host, inputs), readonly: false })
  const messagePath = container.terminationMessagePath ?? '/dev/termination-log'
  if (messagePath) mounts.push({ containerPath: messagePath, hostPath: await terminationLog(context, host, inputs), readonly: false })
  return mounts
}

async function volumeMount(context: KubeletContext, host: KubeletHost, inputs: MountInputs, mount: FrozenMount, index: number): Promise<Mount> {
  const { container } = inputs
  const image = inputs.imageVolumes?.get(mount.name)
  const volume = inputs.volumes.get(mount.name)
  if (!image && (volume === undefined || volume.block)) throw new ConfigError(`cannot find volume "${mount.name}" to mount into container "${container.name}"`)
  const subPath = mount.subPathExpr ? expandStrictly(mount.subPathExpr, inputs.environment) : (mount.subPath ?? '')
  if (subPath.startsWith('/')) throw new ConfigError(`error SubPath \`${subPath}\` must not be an absolute path`)
  if (subPath.split('/').includes('..')) throw new ConfigError(`unable to provision SubPath \`${subPath}\`: must not contain '..'`)
  const propagation = propagations[mount.mountPropagation ?? 'None']
  if (!propagation) throw new ConfigError(`invalid MountPropagation mode: "${mount.mountPropagation}"`)
  const asksToRecurse = (mount.recursiveReadOnly ?? 'Disabled') !== 'Disabled'
  const handler = asksToRecurse ? await findHandler(context, await handlerName(context, inputs.pod)) : undefined
  const recursiveReadOnly = resolveRecursiveReadOnly(mount, handler?.features?.recursiveReadOnlyMounts === true)
  const source = image ? await image(subPath) : { hostPath: volume ? await pathOf(context, host, inputs, volume, subPath, { name: mount.name, index }) : '' }
  return {
    containerPath: mount.mountPath.startsWith('/') ? mount.mountPath : `/${mount.mountPath}`,
    ...source,
    readonly: image !== undefined || mount.readOnly === true || volume?.readOnly === true,
    propagation,
    ...(recursiveReadOnly ? { recursiveReadOnly } : {}),
  }
}

/**
 * Whether what is mounted below a read-only mount becomes read-only too, as far as the runtime can do it.
 * @throws ConfigError with upstream's text when it is required and cannot be.
 */
export function resolveRecursiveReadOnly(mount: FrozenMount, supported: boolean): boolean {
  const mode = mount.recursiveReadOnly ?? 'Disabled'
  if (mode === 'Disabled') return false
  const refuse = (why: string) => new ConfigError(`failed to resolve recursive read-only mode: ${why}`)
  const asked = `volume "${mount.name}" requested recursive read-only mode, but it is`
  if (!mount.readOnly) throw refuse(`${asked} not read-only`)
  const propagation = mount.mountPropagation ?? 'None'
  if (propagation !== 'None') throw refuse(`${asked} not compatible with propagation "${propagation}"`)
  if (mode === 'IfPossible') return supported
  if (mode !== 'Enabled') throw refuse(`unknown recursive read-only mode "${mode}"`)
  if (!supported) throw refuse(`${asked} not supported by the runtime`)
  return true
}

function expandStrictly(expression: string, environment: ReadonlyMap<string, string>): string {
  let missing: string | undefined
  const lookup = (name: string) => {
    const value = environment.get(name)
    if (value === undefined) missing = name
    return value
  }
  const path = expand(expression, lookup, maxPathLength)
  if (missing !== undefined) throw new ConfigError(`missing value for "${missing}"`)
  return path
}

async function pathOf(
  context: KubeletContext,
  host: KubeletHost,
  { pod, container }: MountInputs,
  volume: MountedVolume,
  path: string,
  mount: { readonly name: string; readonly index: number },
): Promise<string> {
  if (path === '') return volume.path
  const directory = podDirectory(context.config.rootDirectory, pod.metadata.uid ?? '')
  const subPath = { podDirectory: directory, volumeName: volume.name, volumePath: volume.path, containerName: container.name, index: mount.index, path }
  // Details would reveal the node's filesystem to the user: they are logged instead.
  const fail = (what: string, error: unknown) => {
    const details = { container: container.name, volumeMount: mount.name }
    context.log.error(error, `Failed to ${what} for volumeMount of the container`, details)
    return new ConfigError(`failed to ${what} for volumeMount "${mount.name}" of container "${container.name}"`, { cause: error })
  }
  await makeSubPath(host, subPath).catch((error: unknown) => Promise.reject(fail('create subPath directory', error)))
  return bindSubPath(host, subPath).catch((error: unknown) => Promise.reject(fail('prepare subPath', error)))
}

/** Block volumes as devices. @throws ConfigError */
export function containerDevices({ container, volumes }: Pick<MountInputs, 'container' | 'volumes'>): Device[] {
  return (container.volumeDevices ?? []).map(({ name, devicePath }) => {
    if (!devicePath.startsWith('/')) throw new ConfigError(`error DevicePath \`${devicePath}\` must be an absolute path`)
    const volume = volumes.get(name)
    if (!volume?.block) throw new ConfigError(`cannot find volume "${name}" to pass into container "${container.name}"`)
    return { containerPath: devicePath, hostPath: volume.path, permissions: volume.readOnly ? 'r' : 'mrw' }
  })
}

async function writeHostsFile(context: KubeletContext, host: KubeletHost, { pod, podIPs }: MountInputs): Promise<string> {
  const path = `${podDirectory(context.config.rootDirectory, pod.metadata.uid ?? '')}/etc-hosts`
  const nodeHosts = pod.spec.hostNetwork ? ((await readTextIfExists(host.path('/etc/hosts'))) ?? '') : ''
  await makeDirectory(dirname(host.path(path)))
  await writeFile(host.path(path), hostsFile(pod, podIPs, context.config.clusterDomain, nodeHosts), { mode: 0o644 })
  return path
}

async function terminationLog(context: KubeletContext, host: KubeletHost, { pod, container }: MountInputs): Promise<string> {
  const directory = `${podDirectory(context.config.rootDirectory, pod.metadata.uid ?? '')}/containers/${container.name}`
  const path = `${directory}/${randomBytes(4).toString('hex')}`
  await makeDirectory(host.path(directory), 0o750)
  // Any user of the container must be able to write its message.
  await writeFile(host.path(path), '', { mode: 0o666 })
  await chmod(host.path(path), 0o666)
  return path
}
