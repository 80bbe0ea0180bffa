/** Which metrics a component tells (L5). Upstream: component-base/metrics/options.go (v1.36). */
import { list, text } from './flags.ts'
import { optionGroup } from './optionGroup.ts'

export const metrics = optionGroup({
  name: 'Metrics',
  flags: {
    'allow-metric-labels': text('Accepted, without effect: the values of labels are not limited'),
    'allow-metric-labels-manifest': text('Accepted, without effect, as --allow-metric-labels'),
    'disabled-metrics': list('Metrics, by their whole names, that are neither counted nor told'),
    'show-hidden-metrics-for-version': text('Accepted, without effect: no metric is hidden'),
  },
  settings: (values) => ({ disabled: values['disabled-metrics'] }),
})
