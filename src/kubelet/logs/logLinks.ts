/**
 * Links to container logs by the names of their pods (L3): in `/var/log/containers`, where log collectors look.
 * Upstream: kubelet/kuberuntime/legacy.go, kuberuntime_gc.go evictPodLogsDirectories (v1.36).
 */
import { readlink, rm, stat, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { listIfExists, makeDirectory } from '#host/files'
import type { FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'

type LinkContext = Pick<KubeletContext, 'host' | 'config' | 'log'>

const suffix = '.log'
/** The longest file name on the file systems of logs. */
const maxNameLength = 255

export function logLinksDirectory({ config }: Pick<LinkContext, 'config'>): string {
  return join(dirname(config.podLogsDirectory), 'containers')
}

/** `web_default_main-0123….log` */
export function logLinkName(pod: FrozenPod, containerName: string, containerId: string): string {
  return `${`${pod.metadata.name}_${pod.metadata.namespace}_${containerName}-${containerId}`.slice(0, maxNameLength - suffix.length)}${suffix}`
}

/**
 * A link that cannot be created is only logged: the log itself exists anyway.
 * @param logPath of the node
 */
export async function linkContainerLog(context: LinkContext, pod: FrozenPod, containerName: string, containerId: string, logPath: string): Promise<void> {
  const { host, log } = context
  if (!host) return
  const path = join(logLinksDirectory(context), logLinkName(pod, containerName, containerId))
  try {
    await stat(host.path(logPath))
    await makeDirectory(host.path(dirname(path)), 0o755)
    await symlink(logPath, host.path(path))
  } catch (error) {
    log.v(1).info('Failed to create legacy symbolic link', { path, containerLogPath: logPath, error: String(error) })
  }
}

export async function removeLogLink(context: LinkContext, pod: FrozenPod, containerName: string, containerId: string): Promise<void> {
  if (context.host) await rm(context.host.path(join(logLinksDirectory(context), logLinkName(pod, containerName, containerId))), { force: true })
}

/** Removes the links of containers that the runtime has forgotten. A log that is being renamed is missing only for a moment. */
export async function removeDeadLogLinks(context: LinkContext, isKnown: (containerId: string) => boolean): Promise<void> {
  const { host, config } = context
  if (!host) return
  const directory = host.path(logLinksDirectory(context))
  for (const name of await listIfExists(directory)) {
    const path = join(directory, name)
    const target = await readlink(path).catch(() => '')
    // Others' links are theirs.
    if (!target.startsWith(`${config.podLogsDirectory}/`) || isKnown(name.slice(name.lastIndexOf('-') + 1, -suffix.length))) continue
    const isThere = await stat(host.path(target)).then(
      () => true,
      () => false,
    )
    if (!isThere) await rm(path, { force: true })
  }
}
