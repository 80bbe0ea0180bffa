/** Which features the controllers and the scheduler are to have (L5). Upstream: component-base/featuregate's AddFlag. */
import { checkedFeatureGates, featureGateFlag } from '../../apiserver/options/featureGates.ts'
import { optionGroup } from '../../apiserver/options/optionGroup.ts'

export const componentFeatures = optionGroup({
  name: 'Features',
  flags: { 'feature-gates': featureGateFlag },
  settings: (values) => checkedFeatureGates(values['feature-gates']),
})
