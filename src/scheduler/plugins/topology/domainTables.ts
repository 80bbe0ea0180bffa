/**
 * The domain tables of one plugin (L3): made when the first pod asks, then kept in step for all that ask the same, as the pods of one template do.
 * Their number is bounded: the least recently used one is dropped.
 */
import { LruCache } from '#base/lruCache'
import type { NodeInfo } from '../../framework/nodeInfo.ts'
import type { PodInfo } from '../../framework/podInfo.ts'
import type { PlacementIndex, Snapshot } from '../../framework/snapshot.ts'
import { DomainTable, type DomainTableShape } from './domainTable.ts'

/** Each costs a look at every placement and a few bytes a node. */
const mostTables = 128

export class DomainTables implements PlacementIndex {
  readonly #tables = new LruCache<string, DomainTable>(mostTables)

  /** @param key tells everything that the shape depends on */
  get(key: string, snapshot: Snapshot, shape: () => DomainTableShape): DomainTable {
    let table = this.#tables.get(key)
    if (!table) {
      table = new DomainTable(shape(), snapshot.nodes)
      this.#tables.set(key, table)
    }
    return table
  }

  podAdded(pod: PodInfo, node: NodeInfo): void {
    for (const table of this.#tables.values()) table.podAdded(pod, node)
  }

  podRemoved(pod: PodInfo, node: NodeInfo): void {
    for (const table of this.#tables.values()) table.podRemoved(pod, node)
  }

  nodeSet(node: NodeInfo): void {
    for (const table of this.#tables.values()) table.setNode(node)
  }

  nodeRemoved(node: NodeInfo): void {
    for (const table of this.#tables.values()) table.removeNode(node)
  }
}
