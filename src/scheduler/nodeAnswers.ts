/**
 * What filters and scores said about nodes (L3), remembered for the next pods of the same kind: as long as a node does not change, a plugin that looks at
 * nothing but the node and what it signs of the pod would say the same again. Decides nothing: without it every answer is asked for, with the same result.
 * Upstream signs pods too (framework.SignPlugin, v1.36), to reuse whole rankings of nodes.
 */
import { LruCache } from '#base/lruCache'
import type { NodeInfo } from './framework/nodeInfo.ts'
import type { NodeRefusal } from './framework/nodeRefusals.ts'
import type { SchedulerPlugin } from './framework/plugin.ts'
import type { PodInfo } from './framework/podInfo.ts'

/** No node's generation. */
const never = -1

/** Answers about nodes, each good for one state of its node. */
export class NodeAnswers<T> {
  readonly #generations: number[] = []
  readonly #answers: (T | undefined)[] = []

  has(node: NodeInfo): boolean {
    return this.#generations[node.slot] === node.generation
  }

  /** Only what `has`. */
  get(node: NodeInfo): T {
    return this.#answers[node.slot] as T
  }

  set(node: NodeInfo, answer: T): void {
    // A clone is in a state that the cache never had.
    if (node.slot < 0) return
    // Filled up to there: an array with holes is slow to read.
    while (this.#generations.length <= node.slot) {
      this.#generations.push(never)
      this.#answers.push(undefined)
    }
    this.#generations[node.slot] = node.generation
    this.#answers[node.slot] = answer
  }
}

/** Kinds of pods that are remembered at once: each costs two numbers for every node. */
const maxKinds = 32

interface Kind<T> {
  answers: NodeAnswers<T> | undefined
}

/** The answers that the plugins of one profile gave. */
export class AnswerMemory {
  readonly #filters = new LruCache<string, Kind<NodeRefusal | undefined>>(maxKinds)
  readonly #scores = new LruCache<string, Kind<number>>(maxKinds)

  /** The first refusal of these filters, or none; undefined when a filter depends on more than the node, or no earlier pod had the same signature. */
  filters(plugins: readonly SchedulerPlugin[], pod: PodInfo): NodeAnswers<NodeRefusal | undefined> | undefined {
    let kind = ''
    for (const plugin of plugins) {
      const signature = plugin.sign?.(pod)
      if (signature === undefined) return undefined
      kind += `${plugin.name}\n${signature}\n`
    }
    return answersOf(this.#filters, kind)
  }

  /** The plugin's scores before they are normalized; undefined likewise. */
  scores(plugin: SchedulerPlugin, pod: PodInfo): NodeAnswers<number> | undefined {
    const signature = plugin.sign?.(pod)
    return signature === undefined ? undefined : answersOf(this.#scores, `${plugin.name}\n${signature}`)
  }
}

/** Only from the second pod on: most signatures occur once. */
function answersOf<T>(kinds: LruCache<string, Kind<T>>, kind: string): NodeAnswers<T> | undefined {
  const known = kinds.get(kind)
  if (!known) {
    kinds.set(kind, { answers: undefined })
    return undefined
  }
  known.answers ??= new NodeAnswers()
  return known.answers
}
