/**
 * What the init containers of a pod had exclusively and its later containers may have again (L3, pure): CPUs, devices. Sidecars keep theirs.
 * Upstream: cpusToReuse and devicesToReuse of kubelet/cm/cpumanager and devicemanager (v1.36).
 */
import { type FrozenContainer, type FrozenPod, isRestartableInitContainer } from '../core/containers.ts'

export class InitReuse<Id> {
  /** Resource → ids, of one pod: pods are admitted one after another. */
  #podUid = ''
  readonly #pools = new Map<string, Set<Id>>()

  of(pod: FrozenPod, resource: string): ReadonlySet<Id> {
    return (this.#podUid === pod.metadata.uid ? this.#pools.get(resource) : undefined) ?? new Set()
  }

  /** The container has been given these: an init container leaves them to the next, any other takes them. */
  note(pod: FrozenPod, { name }: FrozenContainer, resource: string, ids: Iterable<Id>): void {
    if (this.#podUid !== pod.metadata.uid) this.#pools.clear()
    this.#podUid = pod.metadata.uid ?? ''
    const pool = this.#pools.get(resource) ?? new Set<Id>()
    this.#pools.set(resource, pool)
    const init = pod.spec.initContainers?.find((candidate) => candidate.name === name)
    const leaves = init !== undefined && !isRestartableInitContainer(init)
    for (const id of ids) {
      if (leaves) pool.add(id)
      else pool.delete(id)
    }
  }

  forget(podUid: string): void {
    if (this.#podUid === podUid) this.#pools.clear()
  }
}
