/** What the processes of real nodes need from the server that starts them (L5). */
import type { FeatureGateSettings } from '#base/featureGates'
import type { ClusterPaths, ClusterState } from '../localCluster/clusterState.ts'
import type { KeyPair } from '../pki/certificates.ts'
import type { ProcessList } from './processList.ts'
import type { ProcessTools } from './processTools.ts'

export interface AgentsOptions {
  readonly paths: ClusterPaths
  readonly state: ClusterState
  readonly ca: KeyPair
  /** Words that run this program. */
  readonly self: readonly string[]
  readonly verbosity: number
  readonly tools: ProcessTools
  readonly processes: ProcessList
  /** What --feature-gates turns on and off in the kubelets. */
  readonly featureGates: FeatureGateSettings
}
