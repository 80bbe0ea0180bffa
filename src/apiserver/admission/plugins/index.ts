/**
 * The admission chain in upstream's order (L3), as far as it is built; NodeRestriction is on, as kubeadm has it.
 * Upstream: pkg/kubeapiserver/options/plugins.go AllOrderedPlugins.
 */
import type { Random } from '#base/random'
import type { AdmissionPlugin, ObjectReader } from '../admission.ts'
import { defaultTolerationSeconds } from './defaultTolerationSeconds.ts'
import { namespaceLifecycle } from './namespaceLifecycle.ts'
import { nodeRestriction } from './nodeRestriction.ts'
import { priority } from './priority.ts'
import { serviceAccount } from './serviceAccount.ts'
import { taintNodesByCondition } from './taintNodesByCondition.ts'

export interface AdmissionPluginDeps {
  readonly reader: ObjectReader
  readonly random: Random
}

export function createAdmissionPlugins({ reader, random }: AdmissionPluginDeps): readonly AdmissionPlugin[] {
  return [
    namespaceLifecycle(reader),
    serviceAccount(reader, random),
    nodeRestriction(reader),
    taintNodesByCondition,
    priority(reader),
    defaultTolerationSeconds,
  ]
}
