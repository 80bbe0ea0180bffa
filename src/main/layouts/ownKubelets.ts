/**
 * The kubelets of this cluster's simulated nodes, by node (L5): those that run in this process, and those that another process runs. The API server connects to a
 * loopback port for one of these only: the status of a Node can be patched, and could name any port of this host.
 */
import fs from 'node:fs'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import { readTextIfExists, writeFileAtomic } from '#host/files'
import type { ResourceSample } from '#kubelet/server/stats/resourceSample'

export interface OwnKubelet {
  /** What the node's status names. */
  readonly address: string
  readonly port: number
  /** The loopback address on which it listens. */
  readonly listensOn: string
}

export interface OwnKubelets {
  add(nodeName: string, kubelet: OwnKubelet): void
  /** Lets `measure` measure the node, with or without a port. */
  addMeter(nodeName: string, measure: () => Promise<ResourceSample>): void
  /** Forgets a node that is removed, and its meter. */
  remove(nodeName: string): void
  /** Tells the other processes which kubelets run here, if there are others that serve the API. */
  publish(): Promise<void>
  /** Forgets those that ran here: another server may run the nodes from now on. */
  clear(): void
  /** Measures, by another process, nodes that do not run here; undefined: it has none. */
  measureElsewhere(measure: OwnKubelets['measure']): void
  /**
   * Measures the node and its containers; undefined: its kubelet runs neither here nor in a process that measures for this one.
   * @throws Error when the kubelet of the node is to run here and has no meter yet: its port would not answer either
   */
  measure(nodeName: string): Promise<ResourceSample> | undefined
  /** Where the kubelet of that node listens, if its status names what the kubelet publishes. */
  listenAddress(nodeName: string, address: string, port: number): string | undefined
  /** Follow what another server publishes; none where there are no others. */
  readonly components: readonly Component[]
}

/** Where servers tell each other which kubelets they run. */
export interface SharedKubelets {
  /** In the cluster's directory; the servers alone write it. */
  readonly file: string
  readonly clock: Clock
}

const lookEveryMs = 1000

/** @param shared undefined: there are no other servers */
export function createOwnKubelets(shared?: SharedKubelets): OwnKubelets {
  const kubelets = new Map<string, OwnKubelet>()
  const meters = new Map<string, () => Promise<ResourceSample>>()
  let elsewhere: ReadonlyMap<string, OwnKubelet> = new Map()
  let meterElsewhere: OwnKubelets['measure'] = () => undefined
  const onFound = (found: typeof elsewhere) => {
    elsewhere = found
  }
  return {
    add: (nodeName, kubelet) => void kubelets.set(nodeName, kubelet),
    addMeter: (nodeName, measure) => void meters.set(nodeName, measure),
    remove: (nodeName) => {
      kubelets.delete(nodeName)
      meters.delete(nodeName)
    },
    publish: async () => {
      if (shared) await writeFileAtomic(shared.file, JSON.stringify([...kubelets]), 0o600)
    },
    clear: () => {
      kubelets.clear()
      meters.clear()
    },
    measureElsewhere: (measure) => {
      meterElsewhere = measure
    },
    measure: (nodeName) => {
      const own = meters.get(nodeName)?.()
      if (own) return own
      if (kubelets.has(nodeName)) throw new Error(`the kubelet of node ${nodeName} has not started yet`)
      return elsewhere.has(nodeName) ? meterElsewhere(nodeName) : undefined
    },
    listenAddress: (nodeName, address, port) => {
      const own = kubelets.get(nodeName) ?? elsewhere.get(nodeName)
      return own?.address === address && own.port === port ? own.listensOn : undefined
    },
    components: shared ? [{ name: 'kubelets of other servers', run: (signal) => follow(shared, onFound, signal) }] : [],
  }
}

async function follow({ file, clock }: SharedKubelets, onFound: (kubelets: ReadonlyMap<string, OwnKubelet>) => void, signal: AbortSignal): Promise<void> {
  let lastMs = 0
  while (!signal.aborted) {
    const changedMs = fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0
    if (changedMs !== lastMs) onFound(new Map(JSON.parse((await readTextIfExists(file)) || '[]') as [string, OwnKubelet][]))
    lastMs = changedMs
    await clock.sleep(lookEveryMs, signal).catch(() => {})
  }
}
