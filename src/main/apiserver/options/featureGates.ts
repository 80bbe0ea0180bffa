/** The flag --feature-gates of every component (L5). Upstream: component-base/featuregate's AddFlag. */
import { type FeatureGateSettings, featureGateFaults } from '#base/featureGates'
import { switches, UsageError } from './flags.ts'

export const featureGateFlag = switches('name=true|false for features; those that stay as v1.36 has them by default are named in the log')

/** @throws UsageError with every name that there is not and every feature that cannot be turned */
export function checkedFeatureGates(settings: FeatureGateSettings): FeatureGateSettings {
  const faults = featureGateFaults(settings)
  if (faults.length > 0) throw new UsageError(faults.map((fault) => `--feature-gates: ${fault}`))
  return settings
}
