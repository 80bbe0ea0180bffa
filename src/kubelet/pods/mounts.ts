/**
 * A container's mounts (L3): its volume mounts with subpaths, the managed hosts file and the termination log.
 * Upstream: kubelet_pods.go makeMounts, kuberuntime_container.go makeMounts (v1.36).
 */
import { randomBytes } from 'node:crypto'
import { chmod, mkdir, realpath, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { VolumeMount } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Mount } from '#grpc/criTypes'
import { readTextIfExists } from '#host/files'
import type { KubeletContext } from '../context.ts'
import type { KubeletHost } from '../host.ts'
import { podDirectory } from '../volumes/volumeManager.ts'
import type { FrozenContainer, FrozenPod } from './containers.ts'
import { hostsFile } from './dns.ts'
import { ConfigError } from './environment.ts'
import { expand } from './expansion.ts'

export interface MountInputs {
  readonly pod: FrozenPod
  readonly container: FrozenContainer
  readonly podIPs: readonly string[]
  readonly environment: ReadonlyMap<string, string>
  /** Volume name → path on the node. */
  readonly volumes: ReadonlyMap<string, string>
}

const propagations = {
  None: 'PROPAGATION_PRIVATE',
  HostToContainer: 'PROPAGATION_HOST_TO_CONTAINER',
  Bidirectional: 'PROPAGATION_BIDIRECTIONAL',
} as const

export async function containerMounts(context: KubeletContext, host: KubeletHost, inputs: MountInputs): Promise<Mount[]> {
  const { container } = inputs
  const mounts: Mount[] = []
  for (const mount of container.volumeMounts ?? []) mounts.push(await volumeMount(host, inputs, mount))
  const has = (path: string) => mounts.some((mount) => mount.containerPath === path)
  if (!has('/etc/hosts')) mounts.push({ containerPath: '/etc/hosts', hostPath: await writeHostsFile(context, host, inputs), readonly: false })
  const messagePath = container.terminationMessagePath ?? '/dev/termination-log'
  if (messagePath) mounts.push({ containerPath: messagePath, hostPath: await terminationLog(context, host, inputs), readonly: false })
  return mounts
}

async function volumeMount(host: KubeletHost, inputs: MountInputs, mount: Frozen<VolumeMount>): Promise<Mount> {
  const volume = inputs.volumes.get(mount.name)
  if (volume === undefined) throw new ConfigError(`cannot find volume "${mount.name}" to mount into container "${inputs.container.name}"`)
  const subPath = mount.subPathExpr ? expandStrictly(mount.subPathExpr, inputs.environment) : (mount.subPath ?? '')
  const propagation = propagations[(mount.mountPropagation ?? 'None') as keyof typeof propagations] ?? propagations.None
  return {
    containerPath: mount.mountPath.startsWith('/') ? mount.mountPath : `/${mount.mountPath}`,
    hostPath: subPath === '' ? volume : await subPathIn(host, volume, subPath),
    readonly: mount.readOnly ?? false,
    propagation,
  }
}

function expandStrictly(expression: string, environment: ReadonlyMap<string, string>): string {
  let missing: string | undefined
  const path = expand(expression, (name) => {
    const value = environment.get(name)
    if (value === undefined) missing = name
    return value
  })
  if (missing !== undefined) throw new ConfigError(`missing value for "${missing}"`)
  return path
}

/** The subpath as a path of the node, created when missing. Symlinks may not lead out of the volume. */
async function subPathIn(host: KubeletHost, volume: string, subPath: string): Promise<string> {
  if (subPath.startsWith('/') || subPath.split('/').includes('..')) throw new ConfigError(`subPath "${subPath}" must be a path within the volume`)
  const root = await realpath(host.path(volume))
  const full = join(root, subPath)
  if (!(await stat(full).catch(() => undefined))) await mkdir(full, { recursive: true, mode: 0o750 })
  const real = await realpath(full)
  if (real !== root && !real.startsWith(`${root}/`)) throw new ConfigError(`subPath "${subPath}" leads out of the volume`)
  return join(volume, real.slice(root.length))
}

async function writeHostsFile(context: KubeletContext, host: KubeletHost, { pod, podIPs }: MountInputs): Promise<string> {
  const path = `${podDirectory(context.config.rootDirectory, pod.metadata.uid ?? '')}/etc-hosts`
  const nodeHosts = pod.spec.hostNetwork ? ((await readTextIfExists(host.path('/etc/hosts'))) ?? '') : ''
  await mkdir(dirname(host.path(path)), { recursive: true })
  await writeFile(host.path(path), hostsFile(pod, podIPs, context.config.clusterDomain, nodeHosts), { mode: 0o644 })
  return path
}

async function terminationLog(context: KubeletContext, host: KubeletHost, { pod, container }: MountInputs): Promise<string> {
  const directory = `${podDirectory(context.config.rootDirectory, pod.metadata.uid ?? '')}/containers/${container.name}`
  const path = `${directory}/${randomBytes(4).toString('hex')}`
  await mkdir(host.path(directory), { recursive: true, mode: 0o750 })
  // Whoever the container runs as must be able to write its message.
  await writeFile(host.path(path), '', { mode: 0o666 })
  await chmod(host.path(path), 0o666)
  return path
}
