/**
 * Where a kubelet gets API objects from (L3): by watches of its own, or by watches that all simulated nodes of a process share
 * (sources/sharedSources.ts). Both deliver the same objects in the same order.
 */
import type { Node, Pod } from '#api/gen/types/core.v1'
import type { KubeObject } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { nodes, pods } from '#client/builtIn'
import type { Client, Resource } from '#client/client'
import { type Followed, type Handler, listWatch, mirror, type OnChange, type Selection } from './listWatch.ts'

export interface KubeletSources {
  /** Follows the pods of the node until aborted. */
  pods(nodeName: string, handler: Handler<Pod>, signal: AbortSignal): Promise<void>
  /** Follows the registered Node. */
  node(nodeName: string, signal: AbortSignal, onChange: OnChange<Node>): Followed<Node>
  /** Follows a selection that the kubelets of other nodes may follow too, such as all Services or one ConfigMap. */
  objects<T extends KubeObject>(resource: Resource<T>, selection: Selection, signal: AbortSignal, onChange?: OnChange<T>): Followed<T>
}

export interface SourceDeps {
  readonly client: Client
  readonly clock: Clock
  readonly log: Logger
}

/** A watch for each selection, with the kubelet's own client. */
export function ownSources(deps: SourceDeps): KubeletSources {
  const { client } = deps
  return {
    pods: (nodeName, handler, signal) => listWatch(client.of(pods), { fieldSelector: `spec.nodeName=${nodeName}` }, handler, deps, signal),
    node: (nodeName, signal, onChange) => mirror(client.of(nodes), { fieldSelector: `metadata.name=${nodeName}` }, deps, signal, onChange),
    objects: (resource, selection, signal, onChange) => mirror(client.of(resource), selection, deps, signal, onChange),
  }
}
