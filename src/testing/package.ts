/**
 * What the package publishes as skiff-kubernetes/testing: a whole cluster in a test. docs/testing.md shows it at work; objects and resources come from
 * skiff-kubernetes/client.
 */
export { type ChaosOptions, chaos, type FaultName } from './chaos.ts'
export { type ClusterClock, type ClusterOptions, type ControlPlanePart, startCluster, type TestCluster } from './cluster.ts'
export type { Fault, FaultSelector, Faults } from './faults.ts'
export type { Change } from './history.ts'
export { violations } from './invariants.ts'
export type { NodeSpec, SimulatedNode } from './node.ts'
export { defaultStages } from './stages/defaultStages.ts'
