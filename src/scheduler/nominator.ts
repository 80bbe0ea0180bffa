/** The pods for which a node is being made free (L3): others count them there, unless they matter more. Upstream: backend/queue/nominator.go. */
import type { PodInfo } from './framework/podInfo.ts'

const nobody: readonly PodInfo[] = []

export class Nominator {
  readonly #nodeOf = new Map<string, string>()
  readonly #byNode = new Map<string, Map<string, PodInfo>>()

  /** '' takes the nomination back. */
  set(pod: PodInfo, nodeName: string): void {
    const { uid = '' } = pod.pod.metadata
    this.delete(uid)
    if (nodeName === '') return
    this.#nodeOf.set(uid, nodeName)
    let there = this.#byNode.get(nodeName)
    if (!there) {
      there = new Map()
      this.#byNode.set(nodeName, there)
    }
    there.set(uid, pod)
  }

  delete(uid: string): void {
    const nodeName = this.#nodeOf.get(uid)
    if (nodeName === undefined) return
    this.#nodeOf.delete(uid)
    const there = this.#byNode.get(nodeName)
    there?.delete(uid)
    if (there?.size === 0) this.#byNode.delete(nodeName)
  }

  get isEmpty(): boolean {
    return this.#byNode.size === 0
  }

  nodeOf(uid: string): string | undefined {
    return this.#nodeOf.get(uid)
  }

  on(nodeName: string): readonly PodInfo[] {
    const there = this.#byNode.get(nodeName)
    return there ? [...there.values()] : nobody
  }
}
