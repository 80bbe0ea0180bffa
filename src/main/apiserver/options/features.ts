/** The flags that turn parts of the server on and off (L5). Upstream: apiserver/pkg/server/options/feature.go. */
import { checkedFeatureGates, featureGateFlag } from './featureGates.ts'
import { flag, whole } from './flags.ts'
import { optionGroup } from './optionGroup.ts'

export const features = optionGroup({
  name: 'Features',
  flags: {
    'enable-priority-and-fairness': flag('Instead of counting requests in flight, let them queue and take turns by priority and fairness', true),
    'feature-gates': featureGateFlag,
    'trace-requests-every': whole('Records every n-th request for skiff explain, and with 1 what components do about each object; 0: none', 0),
  },
  settings: (values) => ({
    priorityAndFairness: values['enable-priority-and-fairness'],
    traceRequestsEvery: values['trace-requests-every'],
    featureGates: checkedFeatureGates(values['feature-gates']),
  }),
})
