/** What a layout of processes is (L5): where the controllers and the simulated nodes of a local cluster run. index.ts lists the layouts. */
import type { UserInfo } from '#apiserver/core/request'
import type { Component } from '#base/component'
import type { LayoutName } from '#cli/clusterManager'
import type { Transport } from '#client/transport'
import type { Fence } from '../../component/leading.ts'
import type { ClusterPaths, ClusterState } from '../../localCluster/clusterState.ts'
import type { LivePki } from '../../pki/livePki.ts'
import type { Pki } from '../../pki/pki.ts'
import type { OwnKubelets } from '../ownKubelets.ts'
import type { ProcessList } from '../processList.ts'
import type { ProcessTools } from '../processTools.ts'

/** A way into the API under any name: in the process of the server, or over the wire by impersonation. */
export type TransportAs = (user: UserInfo, userAgent: string) => Transport

export interface ControllersParts {
  readonly tools: ProcessTools
  readonly state: ClusterState
  /** The server's name in its cluster. */
  readonly name: string
  readonly pki: Pki
}

export interface SimulatedNodesParts {
  readonly tools: ProcessTools
  readonly state: ClusterState
  readonly paths: ClusterPaths
  readonly certificates: LivePki
  readonly ownKubelets: OwnKubelets
  readonly fence: Fence
  /** Calls back when the plan or a certificate may have changed. */
  readonly onLook: (apply: () => Promise<void> | void) => void
}

/** What surrounds a part in the process of the server. */
export interface PartPlace {
  readonly transportAs: TransportAs
  readonly paths: ClusterPaths
  readonly name: string
  readonly verbosity: number
  /** Words that run this program. */
  readonly self: readonly string[]
  readonly processes: ProcessList
}

export interface ProcessLayout {
  readonly name: LayoutName
  /** @throws Error when a flag of the controller manager cannot be read */
  controllers(parts: ControllersParts, place: PartPlace): Promise<Component>
  simulatedNodes(parts: SimulatedNodesParts, place: PartPlace): Component
}
