/** Where the kubelet keeps what belongs to a pod (L3). Upstream: kubelet_getters.go (v1.36). */
import type { KubeletConfig } from './config.ts'
import type { FrozenPod } from './containers.ts'

export function podDirectory(rootDirectory: string, uid: string): string {
  // A uid that is no name of a directory would lead to another one, which is deleted with the pod.
  if (!isPathComponent(uid)) throw new Error(`the uid "${uid}" of a pod cannot be the name of a directory`)
  return `${rootDirectory}/pods/${uid}`
}

export function isPathComponent(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !name.includes('/') && !name.includes('\0')
}

export function podLogDirectory(config: Pick<KubeletConfig, 'podLogsDirectory'>, pod: FrozenPod): string {
  return `${config.podLogsDirectory}/${pod.metadata.namespace}_${pod.metadata.name}_${pod.metadata.uid}`
}
