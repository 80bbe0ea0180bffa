/** What the front tells the page about the cluster that it shows (L4, pure). */
export interface ShownCluster {
  readonly name: string
  readonly server: string
  /** The one that a user without the right to list namespaces begins in. */
  readonly namespace: string
  /** When the bundle was taken, which nothing changes and no node runs. Absent: a cluster. */
  readonly takenMs?: number | undefined
}
