/** Every benchmark, in the order in which they run. */
import type { Scenario } from '../scenario.ts'
import { api } from './api.ts'
import { bundle } from './bundle.ts'
import { claims } from './claims.ts'
import { cycle } from './cycle.ts'
import { deployment } from './deployment.ts'
import { etcd, etcdFailOver } from './etcd.ts'
import { etcdMemory, etcdServe } from './etcdServe.ts'
import { fairness } from './fairness.ts'
import { history } from './history.ts'
import { idle } from './idle.ts'
import { kbench } from './kbench.ts'
import { kubelet } from './kubelet.ts'
import { nodes } from './nodes.ts'
import { pod } from './pod.ts'
import { pods } from './pods.ts'
import { scheduler } from './scheduler.ts'
import { security } from './security.ts'
import { simulated } from './simulated.ts'
import { start } from './start.ts'
import { traces } from './traces.ts'
import { virtual } from './virtual.ts'
import { volumes } from './volumes.ts'

export const scenarios: readonly Scenario[] = [
  start,
  idle,
  api,
  kbench,
  etcd,
  etcdFailOver,
  etcdServe,
  etcdMemory,
  history,
  cycle,
  scheduler,
  deployment,
  nodes,
  simulated,
  claims,
  virtual,
  pod,
  pods,
  kubelet,
  volumes,
  security,
  fairness,
  traces,
  bundle,
]
